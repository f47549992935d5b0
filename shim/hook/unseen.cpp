// Looks through the loader's lists for drivers, and for interposers behind us, that our wrappers bypass.
#include "shim/hook/unseen.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "shim/hook/adoption.hpp"
#include "shim/hook/entries.hpp"
#include "shim/hook/objects.hpp"

namespace tidepool {
namespace {

// glibc 2.35's r_debug_extended, whose lists are chained by namespace; older headers do not have it.
struct NamespaceList {
  r_debug base;
  NamespaceList* next;
};
constexpr int kChainedVersion = 2;

// Calls `visit(library, is_own_namespace)` for the objects of every namespace.
template <typename Visit>
void for_each_object(Visit visit) {
  // The lists may change at any time but inside this callback, which the loader keeps them still for.
  const auto under_lock = [](dl_phdr_info*, std::size_t, void* data) {
    Visit& call = *static_cast<Visit*>(data);
    const auto* first = reinterpret_cast<const NamespaceList*>(loader_list());
    for (const NamespaceList* list = first; list != nullptr;
         list = first->base.r_version >= kChainedVersion ? list->next : nullptr)
      for (const link_map* map = list->base.r_map; map != nullptr; map = map->l_next)
        if (elf::Library library; elf::read_library(*map, library)) call(library, list == first);
    return 1;
  };
  dl_iterate_phdr(under_lock, &visit);
}

template <typename Visit>
void for_each_unseen_driver(const Visit& visit) {
  for_each_object([&](const elf::Library& library, bool own_namespace) {
    if (!is_driver(library)) return;
    for (const Copy& copy : copies)
      if (copy.adopted.load(std::memory_order_acquire) && copy.library.base == library.base) return;
    visit(library, own_namespace);
  });
}

bool is_preloaded(const elf::Library& library) {
  const char* value = std::getenv("LD_PRELOAD");
  std::string_view list = value == nullptr ? "" : value;
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find_first_of(": "));
    list.remove_prefix(entry.size() < list.size() ? entry.size() + 1 : list.size());
    if (!entry.empty() && (entry == library.path || entry == elf::name_of(library))) return true;
  }
  return false;
}

bool defines_hooks(const elf::Library& library) {
  for (const char* name : {"cuInit", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocAsync", "cuMemCreate"})
    if (elf::find_symbol(library, name) != nullptr) return true;
  return false;
}

// Preloaded after us. Calls come to us first, and ours go straight to the driver.
void describe_bypassed_interposers(std::vector<std::string>& lines) {
  bool behind_us = false;
  for_each_library([&](const elf::Library& library) {
    if (elf::address_of(library, "cuInit") == wrapper_of(index_of(Hook::cuInit)))
      behind_us = true;
    else if (behind_us && !is_driver(library) && defines_hooks(library) && is_preloaded(library))
      lines.push_back(std::string(library.path) +
                      " is preloaded behind tidepool and wraps the driver too: calls pass it by");
    return false;
  });
}

}  // namespace

bool has_unseen_driver() {
  bool any = answers_are_swapped();
  for_each_unseen_driver([&](const elf::Library&, bool) { any = true; });
  return any;
}

std::vector<std::string> describe_uncovered() {
  std::vector<std::string> lines;
  for_each_unseen_driver([&](const elf::Library& library, bool own_namespace) {
    lines.push_back(std::string(library.path) +
                    (own_namespace
                         ? " was not noticed: calls to it, if there were any, are not counted"
                         : " is in a namespace of its own (dlmopen): calls to it, if there were any, "
                           "are not counted; `tidepool run --audit` counts up to three at a time"));
  });
  for (std::size_t i = kDriver + 1; i < kCopies; ++i)
    if (copies[i].adopted.load(std::memory_order_acquire))
      lines.push_back(std::string(copies[i].library.path) +
                      " is loaded once more: calls to that copy are counted and passed on, its memory is "
                      "neither served nor limited");
  if (answers_are_swapped())
    lines.push_back(std::string(copies[kDriver].library.path) +
                    " cannot be redirected (this system lets nobody write to its symbol table): calls of "
                    "libraries loaded with RTLD_DEEPBIND are not counted");
  describe_bypassed_interposers(lines);
  return lines;
}

}  // namespace tidepool
