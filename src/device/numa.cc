// Binding of memory by hwloc.
#include "device/numa.h"

#include <hwloc.h>

#include <algorithm>
#include <cstddef>
#include <memory>

namespace sluice {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

// The machine's NUMA nodes and CPUs, without caches and devices, which take longer to look up.
// Groups of CPUs are kept, or nodes would count as near to all CPUs. Null if hwloc cannot tell.
hwloc_topology_t LoadTopology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  if (hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) == 0 &&
      hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) ==
          0 &&
      hwloc_topology_load(topology) == 0) {
    return topology;
  }
  hwloc_topology_destroy(topology);
  return nullptr;
}

// Lives as long as the process.
hwloc_topology_t Topology() {
  static const hwloc_topology_t kTopology = LoadTopology();
  return kTopology;
}

// The nodes of the CPUs that the process may run on; null where that is no choice.
Bitmap NearNodes(hwloc_topology_t topology) {
  if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) < 2) return nullptr;
  const Bitmap cpus(hwloc_bitmap_alloc());
  Bitmap nodes(hwloc_bitmap_alloc());
  if (cpus == nullptr || nodes == nullptr) return nullptr;
  if (hwloc_get_cpubind(topology, cpus.get(), HWLOC_CPUBIND_PROCESS) != 0) return nullptr;
  hwloc_cpuset_to_nodeset(topology, cpus.get(), nodes.get());
  const hwloc_const_nodeset_t all = hwloc_topology_get_topology_nodeset(topology);
  if (hwloc_bitmap_iszero(nodes.get()) != 0 || hwloc_bitmap_isincluded(all, nodes.get()) != 0) {
    return nullptr;
  }
  return nodes;
}

// The one node; null if there is no other or it is not there.
Bitmap OneNode(hwloc_topology_t topology, int node) {
  if (node < 0 || hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) < 2) return nullptr;
  const hwloc_const_nodeset_t all = hwloc_topology_get_topology_nodeset(topology);
  if (hwloc_bitmap_isset(all, static_cast<unsigned>(node)) == 0) return nullptr;
  Bitmap nodes(hwloc_bitmap_alloc());
  if (nodes != nullptr) hwloc_bitmap_only(nodes.get(), static_cast<unsigned>(node));
  return nodes;
}

bool Place(hwloc_topology_t topology, const Bitmap& nodes, std::byte* data, size_t bytes) {
  if (nodes == nullptr) return false;
  // Without HWLOC_MEMBIND_STRICT the nodes are preferred: a full node must not end the process.
  return hwloc_set_area_membind(topology, data, bytes, nodes.get(), HWLOC_MEMBIND_BIND,
                                HWLOC_MEMBIND_BYNODESET) == 0;
}

}  // namespace

bool PlaceNearProcess(std::byte* data, size_t bytes) {
  const hwloc_topology_t topology = Topology();
  return topology != nullptr && Place(topology, NearNodes(topology), data, bytes);
}

bool PlaceOnNode(std::byte* data, size_t bytes, int node) {
  const hwloc_topology_t topology = Topology();
  return topology != nullptr && Place(topology, OneNode(topology, node), data, bytes);
}

int NumaNodes() {
  const hwloc_topology_t topology = Topology();
  const int nodes =
      topology == nullptr ? 0 : hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
  return std::max(nodes, 1);
}

}  // namespace sluice
