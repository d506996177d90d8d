// What each rank sees of its system, as plain values: what the doctor judges by.
//
// Nothing here asks the system. Ranks send their facts to rank 0 as text.
#ifndef SLUICE_TOOLS_DOCTOR_FACTS_H_
#define SLUICE_TOOLS_DOCTOR_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/direct/direct_limit.h"

namespace sluice::bench {

struct MpiFacts {
  bool has_all_threads = false;  // MPI_THREAD_MULTIPLE
  std::string thread_level;      // its name
  std::string lacks;             // a fault of this MPI that is not guarded against; empty: none
  std::string components;        // what Open MPI has loaded: "pml ob1, btl self tcp vader"
  std::string btl;               // what the environment asks Open MPI for; empty: nothing
  std::string single_copy;       // the same, of copies within a node
  std::string yield_when_idle;   // the same
  std::string oversubscribed;    // what Open MPI's launcher says: 0 or 1; empty: nothing
  int launched = 0;              // ranks, as the launcher says; 0: it says nothing
};

struct WireFacts {
  std::string direct_error;  // why there is none on any rank; empty: there is
  std::vector<int> refused;  // ranks of the node with which the kernel does not copy
  int own_copy_error = 0;    // an errno: of process_vm_readv from this process to itself
  std::string memfd_error;   // empty: memory can be shared
  int rdma_devices = 0;      // that the kernel names
};

struct CpuFacts {
  std::vector<int> cpus;  // that this rank may run on
  int online = 0;         // of the machine
  double quota = 0;       // CPUs' worth of time that its control group may use; 0: no limit
  int numa_nodes = 1;
  bool is_placed = false;    // memory can be asked for near these CPUs
  int64_t cache_bytes = 0;   // of the last cache, for each CPU
  bool knows_cache = false;  // the system says so
};

struct GpuFacts {
  std::string built_in;   // as GpuBuiltWith
  bool has_cuda = false;  // built in
  bool has_nccl = false;
  int visible = 0;         // to this process
  int nvidia_devices = 0;  // that NVIDIA's driver names, whether CUDA can use them or not
  std::string device;      // that this rank would use; empty: none
  std::string error;       // why it has none
};

struct LimitFacts {
  int yama_scope = -1;         // as YamaScope
  bool may_trace = false;      // CAP_SYS_PTRACE
  int seccomp = 0;             // 2: a filter decides about system calls
  int64_t shm_bytes = -1;      // the size of /dev/shm; -1: there is none
  int64_t memlock_bytes = -1;  // RLIMIT_MEMLOCK; -1: no limit
  int64_t files = -1;          // RLIMIT_NOFILE; -1: no limit
  int64_t files_hard = -1;     // up to which a process may raise it
  std::string uring_error;     // empty: io_uring can be used
};

struct PortFacts {
  std::vector<int> loopback;        // ports at which this process takes connections of its host
  std::vector<std::string> others;  // "10.0.0.7:4711", "[::]:4711": those of elsewhere, too
  bool has_token = false;
  bool asks_ucx_tcp = false;  // UCX's own TCP is asked for, beyond the loopback interface
};

struct RankFacts {
  std::string host;
  std::string machine;  // the running system's id; empty: unknown
  uint64_t pid_namespace = 0;
  MpiFacts mpi;
  WireFacts wires;
  CpuFacts cpu;
  GpuFacts gpu;
  LimitFacts limits;
  PortFacts ports;
};

// How a transport between GPUs fares: it is opened for trial.
struct GpuTrial {
  bool was_tried = false;
  std::string error;  // empty: it can be used
};

struct JobFacts {
  std::string build;  // as BuiltWith
  std::string mpi;    // as MpiVersion
  bool uses_mpi = true;
  std::string fabric = "mpi";    // what ranks meet over, as Job::fabric
  std::string started_by;        // as Launch::by
  std::string messages = "mpi";  // what carries messages between ranks: its name
  std::vector<RankFacts> ranks;
  std::vector<int> node_of_rank;  // as Sluice has them
  bool nodes_are_given = false;   // by --ranks-per-node
  DirectLimit limit;              // the first one of the job
  GpuTrial cuda_ipc;
  GpuTrial nccl;

  bool is_open_mpi() const { return mpi.rfind("Open MPI", 0) == 0; }
};

std::string ToText(const RankFacts& facts);
// Internal: it is not what ToText gave.
absl::StatusOr<RankFacts> RankFactsOf(const std::string& text);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_DOCTOR_FACTS_H_
