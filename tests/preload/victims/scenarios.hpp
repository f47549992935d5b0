// The scenarios of the victim program, by file: each does one thing that a shim can get wrong, prints
// only what must be equal with and without one, and exits 0.
#pragma once

// ways.cpp: the ways to the driver
void way_dlsym();
void way_procaddress();
void way_procaddress_versions();
void way_default_scope();
void way_reload();
void no_driver_in_process();
void mini_driver();

// memory.cpp: what memory calls answer
void alloc_free();
void wrong_calls();
void stream_order();
void pool_warm_up();
void pool_exhausted();
void pool_used();
void address_answers();
void out_of_memory();
void memory_handed_to_the_driver();
void limit_filled_by_cache();
void own_virtual_memory();
void two_devices();
void emptied_each_step();
void giant();
void several_threads();
void barrier();

// own_memory.cpp: memory that a program maps itself, used again
void own_memory_cycled();
void own_memory_never_mapped();
void own_memory_exported();
void own_memory_retained();
void own_memory_bound();
void own_memory_mapped_twice();
void own_memory_mapped_in_part();
void own_memory_of_other_kinds();
void own_memory_released_twice();
void own_memory_gives_way();
void own_memory_in_bulk();
void own_memory_in_threads();
void own_memory_reset();

// native.cpp: memory of cuMemAlloc, used again
void native_cycled();
void native_small();
void native_pitched();
void native_claimed();
void native_of_contexts();
void native_gives_way();
void native_of_drawn_sizes();
void native_beside_capture();
void native_in_threads();

// sharing.cpp: memory that others see
void ipc_exporter();
void ipc_opener();
void attributes_of_blocks();

// misuse.cpp: calls that the driver refuses
void dead_stream();
void no_mapping();
void behind_the_end();

// wrong_call_table.cpp: what it answers to each
void wrong_call_table();

// lifetime.cpp: contexts, captures, processes that begin and end
void told_late();
void context_death();
void pools_change_under_use();
void capture_beside_frees();
void fork_before_start();
void fork_after_start();
void live_at_exit();
void killed();
void calls_from_last_destructor();
void probe_only();
void free_in_callback();
void capture_dies_with_context();
void constructor_thread();
void mini_cancel();
