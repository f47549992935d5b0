// One line of log at a time, by spdlog, with a sink that holds no lock and no buffer.
#include "shim/base/log.hpp"

#include <fcntl.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "shim/base/descriptor.hpp"

namespace tidepool::log {
namespace {

// stdio's stderr sink takes two locks that a forked child may find held (spdlog issues 1461, 3358).
class LineSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit LineSink(int descriptor) : descriptor_(descriptor) { ::fstat(descriptor_, &opened_); }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    // A program that closes all descriptors may have a file of its own under this number by now.
    struct stat now {};
    if (::fstat(descriptor_, &now) == 0 && now.st_dev == opened_.st_dev && now.st_ino == opened_.st_ino)
      write_quietly(descriptor_, {line.data(), line.size()});
  }
  void flush_() override {}

  int descriptor_;
  struct stat opened_ {};
};

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::off: return spdlog::level::off;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::debug: return spdlog::level::debug;
  }
  return spdlog::level::warn;
}

std::unique_ptr<spdlog::logger> make_logger(int descriptor, LogLevel level) {
  auto logger = std::make_unique<spdlog::logger>("tidepool", std::make_shared<LineSink>(descriptor));
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>("tidepool[%P] %l: %v"));
  logger->set_level(level_of(level));
  return logger;
}

// Never destroyed: lines are written until the very end of the process.
constinit std::atomic<spdlog::logger*> current{nullptr};

spdlog::logger& logger() {
  if (spdlog::logger* opened = current.load(std::memory_order_acquire)) return *opened;
  static spdlog::logger* const by_default = make_logger(STDERR_FILENO, LogLevel::warn).release();
  return *by_default;
}

}  // namespace

void open(LogLevel level, const std::string& file) {
  int descriptor = STDERR_FILENO;
  if (!file.empty()) {
    const std::string path = expand_path(file, ::getpid());
    descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
    if (descriptor < 0) {
      const int cause = errno;
      descriptor = STDERR_FILENO;
      warn("TIDEPOOL_LOG_FILE " + path + " cannot be written (" + std::strerror(cause) +
           "); logging on stderr");
    }
  }
  current.store(make_logger(descriptor, level).release(), std::memory_order_release);
}

void error(std::string_view line) { logger().error(line); }
void warn(std::string_view line) { logger().warn(line); }
void info(std::string_view line) { logger().info(line); }
void debug(std::string_view line) { logger().debug(line); }

}  // namespace tidepool::log
