// victim SCENARIO: runs one scenario by name.
#include <cstdio>
#include <cstring>

#include "tests/preload/victims/scenarios.hpp"

int main(int count, char** arguments) {
  struct Row {
    const char* name;
    void (*run)();
  };
#define ROW(scenario) \
  { #scenario, scenario }
  const Row rows[] = {ROW(way_dlsym),
                      ROW(way_procaddress),
                      ROW(way_procaddress_versions),
                      ROW(way_default_scope),
                      ROW(way_reload),
                      ROW(no_driver_in_process),
                      ROW(alloc_free),
                      ROW(wrong_calls),
                      ROW(stream_order),
                      ROW(pool_warm_up),
                      ROW(pool_used),
                      ROW(pool_exhausted),
                      ROW(address_answers),
                      ROW(out_of_memory),
                      ROW(memory_handed_to_the_driver),
                      ROW(own_virtual_memory),
                      ROW(own_memory_cycled),
                      ROW(own_memory_never_mapped),
                      ROW(own_memory_exported),
                      ROW(own_memory_retained),
                      ROW(own_memory_bound),
                      ROW(own_memory_mapped_twice),
                      ROW(own_memory_mapped_in_part),
                      ROW(own_memory_of_other_kinds),
                      ROW(own_memory_released_twice),
                      ROW(own_memory_gives_way),
                      ROW(own_memory_in_bulk),
                      ROW(own_memory_in_threads),
                      ROW(own_memory_reset),
                      ROW(native_cycled),
                      ROW(native_small),
                      ROW(native_pitched),
                      ROW(native_claimed),
                      ROW(native_of_contexts),
                      ROW(native_gives_way),
                      ROW(native_of_drawn_sizes),
                      ROW(native_beside_capture),
                      ROW(native_in_threads),
                      ROW(ipc_exporter),
                      ROW(ipc_opener),
                      ROW(attributes_of_blocks),
                      ROW(limit_filled_by_cache),
                      ROW(two_devices),
                      ROW(several_threads),
                      ROW(barrier),
                      ROW(context_death),
                      ROW(pools_change_under_use),
                      ROW(capture_beside_frees),
                      ROW(fork_before_start),
                      ROW(fork_after_start),
                      ROW(live_at_exit),
                      ROW(killed),
                      ROW(calls_from_last_destructor),
                      ROW(probe_only),
                      ROW(told_late),
                      ROW(wrong_call_table),
                      ROW(dead_stream),
                      ROW(no_mapping),
                      ROW(behind_the_end),
                      ROW(emptied_each_step),
                      ROW(giant),
                      ROW(free_in_callback),
                      ROW(capture_dies_with_context),
                      ROW(constructor_thread),
                      ROW(mini_cancel),
                      ROW(mini_driver)};
#undef ROW
  for (const Row& row : rows)
    if (count == 2 && std::strcmp(arguments[1], row.name) == 0) {
      row.run();
      std::printf("done\n");
      return 0;
    }
  std::fprintf(stderr, "usage: victim SCENARIO\n");
  return 2;
}
