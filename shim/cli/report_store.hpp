// Where reports lie: the folder in which the processes of a command leave theirs while it runs, and the
// user's folder of gathered ones.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tidepool::cli {

// A fresh folder, mode 0700, gone with the object. TIDEPOOL_RUN tells the command's processes of it.
class RunFolder {
 public:
  RunFolder();
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }        // empty: could not be made
  const std::string& problem() const { return problem_; }  // why

  struct Content {
    std::vector<nlohmann::json> reports;
    std::vector<std::string> unreadable;  // "123.json is cut off; ..."
  };
  Content read() const;

  // For a `tidepool run` inside another one: its reports belong to the outer command too.
  void copy_to(const std::string& outer) const;

 private:
  std::string path_;
  std::string problem_;
};

// ${XDG_CACHE_HOME:-~/.cache}/tidepool/reports. Throws std::runtime_error if there is no home.
std::string kept_reports_folder();

// Writes under a name that sorts by time, keeps the newest `most`, returns the path. Throws
// std::runtime_error with what went wrong and where.
std::string keep_report(const std::string& folder, const nlohmann::json& report, std::size_t most = 50);

// Writes whole or not at all. Throws std::runtime_error.
void write_report(const std::string& path, const nlohmann::json& report);

// Now, as in reports: 2026-11-30T08:21:53.123Z
std::string timestamp();

}  // namespace tidepool::cli
