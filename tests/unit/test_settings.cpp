// The settings table: what is understood, what is refused and in which words.
#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <string>

#include "shim/base/settings.hpp"
#include "shim/base/sizes.hpp"

using namespace tidepool;

namespace {

Settings with(const std::string& variable, const std::string& value) {
  return parse_settings([&](const char* name) { return variable == name ? value.c_str() : nullptr; });
}

}  // namespace

TEST_CASE("defaults are those of the table") {
  const Settings settings = parse_settings([](const char*) -> const char* { return nullptr; });
  CHECK(settings.mode == Mode::ondemand);
  CHECK(settings.fraction == 0.75);
  CHECK(settings.limit.empty());
  CHECK(settings.backing == BackingChoice::automatic);
  CHECK_FALSE(settings.headroom);
  CHECK_FALSE(settings.wait);
  CHECK(settings.frameworks == FrameworkChoice::automatic);
  CHECK(settings.log == LogLevel::warn);
  CHECK_FALSE(settings.fast_free);
  CHECK(settings.errors.empty());
  REQUIRE(settings.written.size() == setting_rows().size());
  for (std::size_t i = 0; i < settings.written.size(); ++i) {
    INFO(setting_rows()[i].variable);
    CHECK(settings.written[i].value == setting_rows()[i].fallback);
    CHECK_FALSE(settings.written[i].from_environment);
  }
}

TEST_CASE("every default can be written by hand") {
  for (const SettingRow& row : setting_rows()) {
    INFO(row.variable);
    CHECK(with(row.variable, row.fallback).errors.empty());
  }
}

TEST_CASE("an empty variable is an unset one") {
  const Settings settings = with("TIDEPOOL_MODE", "");
  CHECK(settings.mode == Mode::ondemand);
  CHECK_FALSE(settings.written.front().from_environment);
}

TEST_CASE("each mode has its name") {
  for (const Mode mode : {Mode::ondemand, Mode::prealloc, Mode::managed, Mode::passthrough, Mode::off})
    CHECK(with("TIDEPOOL_MODE", mode_name(mode)).mode == mode);
}

TEST_CASE("what is not understood makes the process pass through, in one line that says what is allowed") {
  struct Row {
    const char* variable;
    const char* value;
    const char* message;
  };
  const Row rows[] = {
      {"TIDEPOOL_MODE", "fast",
       "TIDEPOOL_MODE=fast is not understood; allowed: ondemand, prealloc, managed, passthrough or off"},
      {"TIDEPOOL_MODE", "OnDemand",
       "TIDEPOOL_MODE=OnDemand is not understood; allowed: ondemand, prealloc, managed, passthrough or off"},
      {"TIDEPOOL_FRACTION", "1.5", "TIDEPOOL_FRACTION=1.5 is not understood; allowed: a number from 0 to 1"},
      {"TIDEPOOL_FRACTION", "-0.1",
       "TIDEPOOL_FRACTION=-0.1 is not understood; allowed: a number from 0 to 1"},
      {"TIDEPOOL_FRACTION", "nan", "TIDEPOOL_FRACTION=nan is not understood; allowed: a number from 0 to 1"},
      {"TIDEPOOL_LIMIT", "lots",
       "TIDEPOOL_LIMIT=lots is not understood; allowed: bytes, 8GiB, 50%, or per device "
       "0=8GiB,GPU-<uuid>=50%"},
      {"TIDEPOOL_BACKING", "pool", "TIDEPOOL_BACKING=pool is not understood; allowed: auto, native or vmm"},
      {"TIDEPOOL_HEADROOM", "-1",
       "TIDEPOOL_HEADROOM=-1 is not understood; allowed: auto, or a size such as 512MiB"},
      {"TIDEPOOL_WAIT", "soon",
       "TIDEPOOL_WAIT=soon is not understood; allowed: auto, forever, or seconds (0: never)"},
      {"TIDEPOOL_FRAMEWORKS", "none",
       "TIDEPOOL_FRAMEWORKS=none is not understood; allowed: auto, all or keep"},
      {"TIDEPOOL_LOG", "loud",
       "TIDEPOOL_LOG=loud is not understood; allowed: off, error, warn, info or debug"},
      {"TIDEPOOL_FAST_FREE", "yes", "TIDEPOOL_FAST_FREE=yes is not understood; allowed: 0 or 1"},
  };
  for (const Row& row : rows) {
    INFO(row.variable << "=" << row.value);
    const Settings settings = with(row.variable, row.value);
    CHECK(settings.mode == Mode::passthrough);
    REQUIRE(settings.errors.size() == 1);
    CHECK(settings.errors.front().message() == row.message);
  }
}

TEST_CASE("waits") {
  CHECK(*with("TIDEPOOL_WAIT", "2.5").wait == 2.5);
  CHECK(*with("TIDEPOOL_WAIT", "0").wait == 0);
  CHECK(std::isinf(*with("TIDEPOOL_WAIT", "forever").wait));
  CHECK_FALSE(with("TIDEPOOL_WAIT", "auto").wait);
  CHECK_FALSE(with("TIDEPOOL_WAIT", "-1").errors.empty());
}

TEST_CASE("limits: for every device, by ordinal, by UUID") {
  constexpr Bytes total = Bytes{80} << 30;
  struct Row {
    const char* text;
    int ordinal;
    const char* uuid;
    Bytes limit;
  };
  const Row rows[] = {
      {"", 0, "GPU-a", kUnlimited},
      {"1073741824", 0, "GPU-a", Bytes{1} << 30},
      {"8GiB", 3, "", Bytes{8} << 30},
      {"50%", 0, "GPU-a", total / 2},
      {"0=8GiB,GPU-a=50%", 0, "GPU-b", Bytes{8} << 30},
      {"0=8GiB,GPU-a=50%", 1, "GPU-a", total / 2},
      {"0=8GiB,GPU-a=50%", 2, "GPU-c", kUnlimited},
      {"1GiB,1=2GiB", 1, "", Bytes{2} << 30},
      {"1=2GiB,1GiB", 1, "", Bytes{2} << 30},
      {"1=2GiB,1GiB", 0, "", Bytes{1} << 30},
  };
  for (const Row& row : rows) {
    INFO(row.text << " for device " << row.ordinal << " " << row.uuid);
    const Settings settings = with("TIDEPOOL_LIMIT", row.text);
    CHECK(settings.errors.empty());
    CHECK(limit_for_device(settings, row.ordinal, row.uuid, total) == row.limit);
  }
  for (const char* bad : {"0", "0%", "101%", "=1GiB", "0=", "1GiB,", ",1GiB", "1GiB;2GiB", "%"}) {
    INFO(bad);
    CHECK_FALSE(with("TIDEPOOL_LIMIT", bad).errors.empty());
  }
}

TEST_CASE("sizes as people write them") {
  struct Row {
    const char* text;
    std::optional<Bytes> size;
  };
  const Row rows[] = {{"0", 0},
                      {"512", 512},
                      {"512B", 512},
                      {"1K", 1024},
                      {"1KiB", 1024},
                      {"1KB", 1000},
                      {"2MiB", 2 << 20},
                      {"1.5GiB", Bytes{3} << 29},
                      {"1 GiB", Bytes{1} << 30},
                      {"1tib", Bytes{1} << 40},
                      {"", {}},
                      {"-1", {}},
                      {"1XiB", {}},
                      {"GiB", {}},
                      {"1GiBs", {}},
                      {"1e3", {}},
                      {"99999999999TiB", {}},
                      {"inf", {}}};
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(parse_size(row.text) == row.size);
  }
  CHECK(format_size(512) == "512 B");
  CHECK(format_size(1536) == "1.5 KiB");
  CHECK(format_size(Bytes{80} << 30) == "80.0 GiB");
  CHECK(format_size((Bytes{1} << 30) - 1) == "1.0 GiB");
}

TEST_CASE("a path can name the process") {
  CHECK(expand_path("/tmp/%p.json", 42) == "/tmp/42.json");
  CHECK(expand_path("%p-%p", 7) == "7-7");
  CHECK(expand_path("100%", 7) == "100%");
}
