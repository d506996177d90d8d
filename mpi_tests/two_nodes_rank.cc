// What scripts/two_nodes.sh promises to a program: MPI finds two nodes, and so does shared memory.
//
// Ends with 0 if two things hold. The ranks that MPI_Comm_split_type puts together are those of one
// host, half of all. A segment of shared memory that one of them makes is seen by all of them, and
// by nobody else.
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr const char* kSegment = "/sluice-two-nodes";

std::string HostName() {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  return {name, static_cast<size_t>(length)};
}

bool SameOnAll(const std::string& name, MPI_Comm comm) {
  std::vector<char> first(name.begin(), name.end());
  first.resize(MPI_MAX_PROCESSOR_NAME);
  MPI_Bcast(first.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0, comm);
  return name == first.data();
}

// One rank of each node makes a segment of the same name, which must not be there yet.
bool ShareOnlyOnNode(MPI_Comm node) {
  int rank = 0;
  MPI_Comm_rank(node, &rank);
  const int flags = rank == 0 ? O_RDWR | O_CREAT | O_EXCL : O_RDWR;
  if (rank != 0) MPI_Barrier(node);
  const int segment = shm_open(kSegment, flags, 0600);
  if (rank == 0) MPI_Barrier(node);
  if (segment >= 0) close(segment);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) shm_unlink(kSegment);
  return segment >= 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  int node_ranks = 0;
  MPI_Comm_size(node, &node_ranks);

  const std::string host = HostName();
  const bool one_host = SameOnAll(host, node);
  const bool first_host = SameOnAll(host, MPI_COMM_WORLD);
  const bool shares = ShareOnlyOnNode(node);
  int right =
      one_host && first_host == (2 * rank < ranks) && 2 * node_ranks == ranks && shares ? 1 : 0;
  if (right == 0) std::fprintf(stderr, "rank %d on %s is wrong\n", rank, host.c_str());
  MPI_Comm_free(&node);
  MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Finalize();
  return right != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
