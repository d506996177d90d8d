// A world: processes that no mpirun started, in one job or in several, meet at a store and get a
// Fabric.
//
//   // In the trainer's processes; the servers' say role = "server".
//   sluice::WorldOptions options;
//   options.store = "tcp://10.0.0.1:29600";
//   options.role = "trainer";
//   options.rank = rank;
//   options.size = 2;
//   options.roles = {{"trainer", 2}, {"server", 4}};
//   auto world = sluice::World::Join(options);
//   // Ranks 0 and 1 are trainers, 2 .. 5 servers.
//   auto session = sluice::Session::Create(world->get(), {});
#ifndef SLUICE_WORLD_H_
#define SLUICE_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"

namespace sluice {

class Session;  // sluice/session.h
class Store;    // sluice/store.h
struct SessionOptions;

struct RoleSize {
  std::string role;
  // How many members it has; 0: as many as its own members say.
  int size = 0;
};

// In place of a rank: the store gives this member the lowest rank of its role that nobody has.
inline constexpr int kAnyRank = -2;

struct WorldOptions {
  // The store where members meet: "tcp://HOST:PORT". A `sluice-store` listens there, or one member
  // does.
  std::string store;
  // A store of another kind, in place of `store`.
  std::shared_ptr<Store> own_store;
  // Whether this member serves the store, at the port of `store`, for as long as its World lives.
  // True: waits for the port if another process has it, such as a world that is about to end. Not
  // set: it does if nobody listens there, and it is rank 0 of the first role, and HOST is an
  // address of this host.
  absl::optional<bool> serve = absl::nullopt;
  // The secret that all members know and strangers do not. A file may hold the token, in place of
  // `token`. Links ask for it, too. Without a token, the token of an `own_store` that ConnectStore
  // has made counts.
  std::string token;
  std::string token_file;
  // Tells worlds apart that meet at one store. Letters, digits, '_', '-' and '.'.
  std::string name = "sluice";

  // Which member this one is: `rank`, or kAnyRank, of the `size` members of its role. Role names
  // are as `name`.
  std::string role = "member";
  int rank = -1;
  int size = 0;
  // All roles that take part, in one order on all members. Empty: `role` alone.
  std::vector<RoleSize> roles;

  // How long a call waits for members that have not come, and for those that have not called. After
  // 5 seconds one member of each role says on stderr for whom it waits, and then every 10 seconds.
  absl::Duration timeout = absl::InfiniteDuration();
  // How long Join waits for the store itself.
  absl::Duration store_timeout = absl::Minutes(5);
  // After how long a member that the store hears nothing of is lost. A member whose process ends
  // is lost at once, if the store is one of Sluice's own.
  absl::Duration lease = absl::Seconds(10);
  // The wire that carries payload between nodes. "auto": UCX if all members have it, and RDMA
  // devices; else TCP. "ucx": an error if a member lacks UCX. "tcp". One member's "tcp" makes it
  // TCP for all.
  std::string wires = "auto";
  // The address at which others reach this member, if it is not to listen on all of its host's.
  std::string bind;
};

// Reads options from the environment. Rank and size come from the first of these that is there. An
// error, if torchrun's, Open MPI's and MPICH's contradict each other:
// * Sluice's own: SLUICE_RANK and SLUICE_SIZE, or PMIX_RANK and SLUICE_SIZE. SLUICE_RANK=any is
//   kAnyRank; its SLUICE_SIZE may come from SLUICE_ROLES;
// * torchrun's: RANK and WORLD_SIZE;
// * Open MPI's: OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE;
// * MPICH's: PMI_RANK and PMI_SIZE;
// * Slurm's, in a step: SLURM_PROCID and SLURM_NTASKS.
// The address of the store is SLUICE_WORLD=tcp://HOST:PORT. Without SLUICE_WORLD the address is
// MASTER_ADDR with MASTER_PORT + 1, because torch's own store listens at MASTER_PORT. In a step of
// Slurm's without these, HOST is the step's first node, and the port follows from the numbers of
// the job and the step. Rank 0 serves the store, unless SLUICE_WORLD says where one is.
// Further: SLUICE_TOKEN or SLUICE_TOKEN_FILE, SLUICE_ROLE, SLUICE_ROLES="trainer:2,server:4" or
// "trainer,server", SLUICE_WORLD_NAME, SLUICE_WORLD_TIMEOUT="90s", SLUICE_WIRES, SLUICE_BIND,
// SLUICE_SERVE=0|1. An empty variable counts as not set. SLUICE_WORLD_TIMEOUT bounds
// `store_timeout`, too.
// `set`: variables that count in place of the process's own; an empty one is not set.
// InvalidArgument names the variable that is wrong, missing, or contradicts another one.
absl::StatusOr<WorldOptions> WorldOptionsFromEnvironment(
    const std::map<std::string, std::string>& set = {});

// Whether the environment says enough for WorldOptionsFromEnvironment: for programs that choose.
bool EnvironmentHasWorld();

struct WorldMember {
  std::string role;
  int rank = 0;
  std::string host;
  int pid = 0;
  bool alive = false;  // false: it is lost, and has not said farewell

  // "server 3 (process 4711 on node7)"
  std::string Describe() const;
};

struct MakeFabricOptions {
  // In place of WorldOptions::timeout.
  absl::optional<absl::Duration> timeout = absl::nullopt;
};

struct EpochOptions {
  // How many members of a role are enough. Roles that are not named need all that were declared.
  // Equal on all members.
  std::vector<RoleSize> at_least = {};
  // In place of WorldOptions::timeout.
  absl::optional<absl::Duration> timeout = absl::nullopt;
};

// One process's membership. Thread: any, one call at a time.
class World {
 public:
  // Connects to the store, or serves it, and registers this member. Waits for the store, and for no
  // other member.
  // * InvalidArgument: the options are bad.
  // * PermissionDenied or Unauthenticated: the token is wrong.
  // * AlreadyExists: another process is this member; names its host and process. With kAnyRank: all
  //   members of the role are here.
  // * FailedPrecondition: another member declares other roles or sizes; names who says what.
  // * Unavailable or DeadlineExceeded: there is no store, within `store_timeout`; or no port to
  //   serve one at.
  static absl::StatusOr<std::unique_ptr<World>> Join(const WorldOptions& options);

  // Says farewell: this member is no longer missed, and is not lost. Fabrics stay. If this member
  // serves the store, the store ends; fabrics and sessions go on without it.
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // This member's rank in its role. One that the store has given may be another one after a call of
  // NextEpoch that has gone to a store that was started anew.
  virtual int rank() const = 0;

  // The members that have come and have not left, in the order of fabric ranks. Asks the store.
  virtual absl::StatusOr<std::vector<WorldMember>> members() = 0;
  // Names the members that are waited for: "server 1", "server 3". A role whose size nobody has
  // said yet counts as one that lacks its rank 0. A lost member is missing until another process
  // takes its place.
  virtual absl::StatusOr<std::vector<std::string>> missing() = 0;

  // A member may join while others are still in an earlier world of the same name. Their places are
  // free when they leave, and it waits for those that come next. It goes to the next store, too,
  // where the earlier world's store ends with it.
  //
  // Waits until nobody is missing. DeadlineExceeded names who has not come. Unavailable names a
  // member that has come and was lost meanwhile. FailedPrecondition as Join.
  virtual absl::Status WaitForAll(absl::Duration timeout) = 0;

  // A fabric of all members: roles in declared order, and ranks within a role. Collective, in the
  // same order on all members; waits for all of them. Each fabric has connections of its own. The
  // World may be destroyed before the fabric or after it. A call that fails fails on all members
  // that wait in it, and counts as one. A member that comes later passes over it, and meets the
  // others in their next call. The order of calls of MakeFabric and NextEpoch counts, too.
  // * DeadlineExceeded: names the members that have not come, or have not called.
  // * Unavailable: names a member that was lost, or has left and had no fabric. One that leaves
  //   after its fabric is waited for again, as one that has not come.
  // * FailedPrecondition: members want wires that others lack, or another version of Sluice; or a
  //   member waits for this one in NextEpoch, and is named.
  virtual absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(
      const MakeFabricOptions& options = {}) = 0;

  // A fabric of the members that are there now, without those that are lost: they and this one are
  // an epoch of the world. For worlds whose members come and go between transfers. Collective over
  // the members of the epoch before and those that have joined since. So a session that has failed
  // because a member was lost is destroyed, and the others go on with the next epoch. A member that
  // joins while others make an epoch waits here for the one after it. An epoch is made again
  // without members that are lost meanwhile. A member that the others have taken for lost, and that
  // comes back, takes part in the next one. Ranks are as in MakeFabric, without gaps.
  // A store of Sluice's that is gone is waited for as a member is. At one that was started anew,
  // this member registers again, and numbers go on from those of all members. Other calls return
  // Unavailable until then.
  // Errors are those of MakeFabric. InvalidArgument: `at_least` is not of the declared roles.
  virtual absl::StatusOr<std::unique_ptr<Fabric>> NextEpoch(const EpochOptions& options = {}) = 0;
  // The number of this member's last epoch, equal on all its members, and growing; 0: none yet. Its
  // members, in the order of fabric ranks.
  virtual int64_t epoch() const = 0;
  virtual std::vector<WorldMember> epoch_members() const = 0;

  // Ends this member's epoch at a version boundary: `after_version` is the last version that the
  // members of the epoch run. Any of them may call it. The first call counts, and later ones change
  // nothing. A member may call it before it starts that version. Then every other member that has
  // received the version finds the word by EpochEndsAfter. The word ends nothing by itself: members
  // ask for it between versions, and call NextEpoch.
  // FailedPrecondition: this member has had no epoch. Unavailable: the store cannot be reached.
  virtual absl::Status EndEpoch(int64_t after_version) = 0;
  // The version that EndEpoch has named for this member's epoch; nothing: nobody has called it.
  // Asks the store. Errors are those of EndEpoch.
  virtual absl::StatusOr<absl::optional<int64_t>> EpochEndsAfter() = 0;
  // Members that are there now and are not in this member's epoch, in the order of fabric ranks.
  // They take part in the next one. Before the first epoch: all other members. Asks the store.
  virtual absl::StatusOr<std::vector<WorldMember>> Joiners() = 0;

  // Tells those who look at the world from outside, such as `python -m sluice.top`, how this member
  // fares: up to 1 KiB of text, the newest of which counts. Does not wait. Texts that come faster
  // than one a second are left out, after some. A store of the caller's is not told.
  // InvalidArgument: the text is empty, or longer.
  virtual absl::Status Say(absl::string_view text) = 0;

  // The fabric rank of a member: in MakeFabric's order. -1: there is none, or sizes are not known.
  virtual int FabricRank(const std::string& role, int rank) const = 0;

  // "tcp://HOST:PORT" of the store; "" for a store of the caller's.
  virtual std::string store_address() const = 0;

 protected:
  World() = default;
};

// A session of the members that are there now: World::NextEpoch, and Session::Create over its
// fabric. For worlds whose members come and go between transfers:
//
//   sluice::EpochOptions epoch;
//   epoch.at_least = {{"server", 1}};
//   while (true) {
//     auto session = sluice::NextSession(world.get(), {}, epoch);
//     if (!session.ok()) return session.status();
//     // Connect, and run versions. Go round again when a run fails because a member is lost, or
//     // when the epoch ends for those that have joined. Close the session before. If Close
//     // fails, leave the memory as it is, and take other memory for the next version.
//   }
//
// Collective, as NextEpoch. A member that is lost before the session is made costs another epoch,
// and is no error. So does one that is silent for a session's timeout, twice at most. The session
// may outlive the world. Its ranks are those of world->epoch_members().
// Errors are those of NextEpoch and of Create. Thread: the world's, and then the session's.
absl::StatusOr<std::unique_ptr<Session>> NextSession(World* world, const SessionOptions& options,
                                                     const EpochOptions& epoch = {});

}  // namespace sluice

#endif  // SLUICE_WORLD_H_
