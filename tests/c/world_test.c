// Processes that meet at a store through the C API: groups, roles, epochs, and one that is killed.
//
//   world_test                            runs all of it
//   world_test PART RANK COUNT ADDRESS    one process of a part
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "c/check.h"
#include "c/tests.h"
#include "c/weight.h"
#include "sluice/sluice.h"

#define PROCESSES 3
static const char kToken[] = "sesame";

static sluice_store* connect_store(const char* address) {
  sluice_connect_store_options options = SLUICE_CONNECT_STORE_OPTIONS_INIT;
  sluice_store* store = NULL;
  options.token = kToken;
  CHECK_OK(sluice_store_connect(address, &options, &store));
  return store;
}

// What lies by rows comes to lie by columns. Returns the status of the wait.
static sluice_status rows_to_columns(sluice_session* session) {
  sluice_transfer* transfer = NULL;
  struct parts parts;
  sluice_run run = 0;
  sluice_status status = compile_weight(session, &transfer);
  if (status != SLUICE_OK) return status;
  fill(&parts, session);
  status = sluice_start(transfer, &parts.src_views, &parts.dst_views, NULL, &run);
  if (status == SLUICE_OK) status = sluice_wait(session, run, -1);
  if (status == SLUICE_OK) check(&parts, session);
  return status;
}

static void end_session(sluice_session* session) {
  CHECK_OK(sluice_session_close(session));
  CHECK_OK(sluice_session_destroy(session));
}

static void group(int32_t rank, int32_t count, const char* address) {
  sluice_store* const store = connect_store(address);
  sluice_session* session = NULL;
  sluice_memory* memory = NULL;
  int64_t sum = 0;
  CHECK(sluice_session_create(store, "a b", rank, count, NULL, &session) < 0);
  CHECK_FAILS(sluice_session_create(store, "group", count, count, NULL, &session),
              SLUICE_INVALID_ARGUMENT, "");
  CHECK(session == NULL);
  CHECK_OK(sluice_session_create(store, "group", rank, count, NULL, &session));
  CHECK(sluice_session_rank(session) == rank && sluice_session_count(session) == count);
  CHECK_OK(rows_to_columns(session));
  CHECK_OK(sluice_allocate(session, 4096, &memory));
  CHECK_OK(sluice_store_add(store, "done", 1, &sum));
  CHECK(sum >= 1 && sum <= count);
  end_session(session);
  memset(sluice_memory_data(memory), 1, 4096);  // outlives its session
  sluice_memory_destroy(memory);
  sluice_store_destroy(store);
}

// Rank 0 is the trainer, and the others are servers, which reach the store by a handle of their
// own.
static void roles(int32_t rank, int32_t count, const char* address) {
  const sluice_role all[2] = {{"trainer", 1, 0}, {"server", count - 1, 0}};
  const int64_t one[1] = {1}, servers[1] = {count - 1};
  const int32_t first[1] = {0}, others[2] = {1, 2};
  const int64_t part_shape[2] = {ROWS / (count - 1), COLUMNS};
  sluice_world_options options = SLUICE_WORLD_OPTIONS_INIT;
  sluice_member member = SLUICE_MEMBER_INIT;
  sluice_layout layout;
  sluice_half half = SLUICE_HALF_INIT;
  sluice_own own = SLUICE_OWN_INIT;
  sluice_start_options start = SLUICE_START_OPTIONS_INIT;
  sluice_store* store = NULL;
  sluice_world* world = NULL;
  sluice_session* session = NULL;
  sluice_transfer* transfer = NULL;
  const char* missing = NULL;
  float data[ROWS * COLUMNS];
  const sluice_view view = view_of(data, rank == 0 ? kShape : part_shape);
  sluice_run run = 0;
  int64_t members = 0, i;
  if (rank == 0) {
    options.store = address;
    options.token = kToken;
  } else {
    options.own_store = store = connect_store(address);
  }
  options.name = "roles";
  options.role = rank == 0 ? "trainer" : "server";
  options.roles = all;
  options.num_roles = 2;
  options.rank = rank == 0 ? 0 : rank - 1;
  options.count = rank == 0 ? 1 : count - 1;
  options.timeout_s = 60;
  CHECK_OK(sluice_world_join(&options, &world));
  sluice_store_destroy(store);  // the world keeps it
  CHECK(strcmp(sluice_world_store_address(world), rank == 0 ? address : "") == 0);
  CHECK_OK(sluice_world_wait(world, 60));
  CHECK_OK(sluice_world_missing(world, &missing));
  CHECK(strcmp(missing, "") == 0);
  CHECK_OK(sluice_world_members(world, SLUICE_MEMBERS_NOW, &members));
  CHECK(members == count);
  CHECK_OK(sluice_world_member(world, rank, &member));
  CHECK(strcmp(member.role, options.role) == 0 && member.rank == options.rank);
  CHECK(member.pid == (int32_t)getpid() && member.alive == 1 && strlen(member.host) > 0);
  CHECK_FAILS(sluice_world_member(world, count, &member), SLUICE_OUT_OF_RANGE, "member 3 of 3");
  CHECK(sluice_world_members(world, 3, &members) == SLUICE_INVALID_ARGUMENT && members == 0);
  CHECK_OK(sluice_world_session(world, NULL, &session));
  CHECK(sluice_session_rank(session) == rank);
  CHECK(sluice_world_rank(world, "server", 1) == 2 && sluice_world_rank(world, "judge", 0) == -1);

  layout = rank == 0 ? layout_of(one, "R") : layout_of(servers, "S(0)");
  layout.ranks = rank == 0 ? first : others;
  half.name = "weight";
  half.shape = kShape;
  half.ndim = 2;
  half.dtype = SLUICE_F32;
  half.layout = &layout;
  half.memory.views = &view;
  half.memory.count = 1;
  if (rank == 0) {
    own.sources = &half;
    own.num_sources = 1;
  } else {
    own.targets = &half;
    own.num_targets = 1;
  }
  CHECK_OK(sluice_connect(session, &own, &transfer));
  for (start.version = 1; start.version <= 3; ++start.version) {
    for (i = 0; i < ROWS * COLUMNS; ++i) {
      data[i] = rank == 0 ? (float)start.version * value_at(i / COLUMNS, i % COLUMNS) : -1;
    }
    CHECK_OK(sluice_start(transfer, NULL, NULL, &start, &run));
    CHECK_OK(sluice_wait(session, run, -1));
    for (i = 0; rank > 0 && i < part_shape[0] * COLUMNS; ++i) {
      const int64_t row = (rank - 1) * part_shape[0] + i / COLUMNS;
      CHECK(data[i] == (float)start.version * value_at(row, i % COLUMNS));
    }
  }
  sluice_world_destroy(world);  // the session goes on
  CHECK_OK(rows_to_columns(session));
  end_session(session);
}

static void join_and_move(const sluice_world_options* options, int32_t rank, int32_t count) {
  sluice_world* world = NULL;
  sluice_session* session = NULL;
  CHECK_OK(sluice_world_join(options, &world));
  CHECK_OK(sluice_world_session(world, NULL, &session));
  CHECK(sluice_session_rank(session) == rank && sluice_session_count(session) == count);
  CHECK_OK(rows_to_columns(session));
  end_session(session);
  sluice_world_destroy(world);
}

// All but the name from the environment, then all of it, and then what the options leave open.
static void environment(int32_t rank, int32_t count, const char* address) {
  sluice_world_options options = SLUICE_WORLD_OPTIONS_INIT;
  sluice_world* world = NULL;
  char text[32];
  CHECK(sluice_environment_has_world() == 0);
  CHECK_FAILS(sluice_world_join(NULL, &world), SLUICE_INVALID_ARGUMENT, "SLUICE_");
  snprintf(text, sizeof text, "%d", (int)rank);
  CHECK(setenv("SLUICE_RANK", text, 1) == 0);
  snprintf(text, sizeof text, "%d", (int)count);
  CHECK(setenv("SLUICE_SIZE", text, 1) == 0);
  CHECK(setenv("SLUICE_WORLD", address, 1) == 0);
  CHECK(setenv("SLUICE_TOKEN", kToken, 1) == 0);
  CHECK(sluice_environment_has_world() == 1);
  options.from_environment = 1;
  options.name = "environment";
  join_and_move(&options, rank, count);
  join_and_move(NULL, rank, count);
  CHECK(unsetenv("SLUICE_RANK") == 0 && unsetenv("SLUICE_SIZE") == 0);
  CHECK(unsetenv("SLUICE_WORLD") == 0);
  snprintf(text, sizeof text, "a:1,b:%d", (int)count - 1);
  CHECK(setenv("SLUICE_ROLES", text, 1) == 0);
  options.name = "both";
  options.store = address;
  options.role = rank == 0 ? "a" : "b";
  options.rank = rank == 0 ? 0 : rank - 1;
  options.count = rank == 0 ? 1 : count - 1;
  join_and_move(&options, rank, count);
}

// The last rank leaves after the first epoch.
static void epochs(int32_t rank, int32_t count, const char* address) {
  const sluice_role enough = {"member", 1, 0};
  sluice_world_options options = SLUICE_WORLD_OPTIONS_INIT;
  sluice_epoch_options epoch = SLUICE_EPOCH_OPTIONS_INIT;
  sluice_world* world = NULL;
  sluice_session* session = NULL;
  sluice_status status;
  int64_t after = 0, members = 0;
  options.store = address;
  options.token = kToken;
  options.name = "epochs";
  options.rank = rank;
  options.count = count;
  CHECK_OK(sluice_world_join(&options, &world));
  CHECK(sluice_world_epoch(world) == 0);
  CHECK_OK(sluice_world_wait(world, 60));
  epoch.at_least = &enough;
  epoch.num_at_least = 1;
  epoch.timeout_s = 60;
  CHECK_OK(sluice_world_next_session(world, NULL, &epoch, &session));
  CHECK(sluice_session_count(session) == count && sluice_world_epoch(world) == 1);
  CHECK_OK(rows_to_columns(session));
  CHECK_OK(sluice_world_members(world, SLUICE_MEMBERS_JOINERS, &members));
  CHECK(members == 0);
  if (rank == 0) CHECK_OK(sluice_world_end_epoch(world, 7));
  while ((status = sluice_world_epoch_ends(world, &after)) == SLUICE_PENDING) {
    CHECK(after == 0);
    CHECK_OK(sluice_poll(session));
  }
  CHECK_OK(status);
  CHECK(after == 7);
  end_session(session);
  if (rank < count - 1) {
    CHECK_OK(sluice_world_next_session(world, NULL, &epoch, &session));
    CHECK(sluice_session_count(session) == 2 || sluice_session_count(session) == 1);
    CHECK(sluice_world_epoch(world) >= 2);
    CHECK_OK(sluice_world_members(world, SLUICE_MEMBERS_EPOCH, &members));
    CHECK(members == sluice_session_count(session));
    end_session(session);
  }
  sluice_world_destroy(world);
}

// The last rank is killed. The others hear which one.
static void lost(int32_t rank, int32_t count, const char* address) {
  sluice_store* const store = connect_store(address);
  sluice_session* session = NULL;
  int64_t finished = 0;
  CHECK_OK(sluice_session_create(store, "lost", rank, count, NULL, &session));
  CHECK_OK(rows_to_columns(session));
  if (rank == count - 1) {
    // Not before the others have what they wait for.
    while (finished < count - 1) {
      CHECK_OK(sluice_poll(session));
      CHECK_OK(sluice_store_add(store, "finished", 0, &finished));
    }
    raise(SIGKILL);
  }
  CHECK_OK(sluice_store_add(store, "finished", 1, &finished));
  CHECK_FAILS(rows_to_columns(session), SLUICE_UNAVAILABLE, "rank 2");
  CHECK(sluice_poll(session) < 0);
  CHECK_OK(sluice_session_destroy(session));
  sluice_store_destroy(store);
}

struct part {
  const char* name;
  void (*body)(int32_t rank, int32_t count, const char* address);
  int last_ends;  // the status of the last process
};

static const struct part kParts[] = {{"group", group, 0},
                                     {"roles", roles, 0},
                                     {"environment", environment, 0},
                                     {"epochs", epochs, 0},
                                     {"lost", lost, SIGKILL}};
#define PARTS ((int)(sizeof kParts / sizeof kParts[0]))

extern char** environ;

static void run_part(const struct part* part, const char* address) {
  pid_t processes[PROCESSES];
  char count_text[16];
  int rank, failed = 0;
  snprintf(count_text, sizeof count_text, "%d", PROCESSES);
  for (rank = 0; rank < PROCESSES; ++rank) {
    char rank_text[16];
    const char* const arguments[7] = {"c_tests",  "world", part->name, rank_text,
                                      count_text, address, NULL};
    snprintf(rank_text, sizeof rank_text, "%d", rank);
    CHECK(posix_spawn(&processes[rank], "/proc/self/exe", NULL, NULL, (char* const*)arguments,
                      environ) == 0);
  }
  for (rank = 0; rank < PROCESSES; ++rank) {
    const int wanted = rank == PROCESSES - 1 ? part->last_ends : 0;
    int status = 0;
    CHECK(waitpid(processes[rank], &status, 0) == processes[rank]);
    if (status == wanted) continue;
    fprintf(stderr, "%s: rank %d ended with status %d\n", part->name, rank, status);
    failed = 1;
  }
  CHECK(!failed);
}

// A rank that is taken, and one that is missed.
static void second_member(const char* address) {
  sluice_world_options options = SLUICE_WORLD_OPTIONS_INIT;
  sluice_world* world = NULL;
  sluice_world* second = NULL;
  sluice_session* session = NULL;
  const char* missing = NULL;
  options.store = address;
  options.token = kToken;
  options.name = "second";
  options.count = 2;
  options.timeout_s = 0.05;
  CHECK_OK(sluice_world_join(&options, &world));
  CHECK(sluice_world_join(&options, &second) == SLUICE_ALREADY_EXISTS && second == NULL);
  CHECK_FAILS(sluice_world_wait(world, 0), SLUICE_DEADLINE_EXCEEDED, "member 1");
  CHECK_FAILS(sluice_world_session(world, NULL, &session), SLUICE_DEADLINE_EXCEEDED, "member 1");
  CHECK_OK(sluice_world_missing(world, &missing));
  CHECK(strcmp(missing, "member 1") == 0);
  options.own_store = connect_store(address);
  CHECK_FAILS(sluice_world_join(&options, &second), SLUICE_INVALID_ARGUMENT, "own_store");
  sluice_store_destroy(options.own_store);
  options.own_store = NULL;
  options.token = "simsim";
  options.store_timeout_s = 5;
  CHECK(sluice_world_join(&options, &second) == SLUICE_PERMISSION_DENIED);
  sluice_world_destroy(world);
}

int world_test(int argc, char** argv) {
  sluice_listen_options listen = SLUICE_LISTEN_OPTIONS_INIT;
  sluice_store_server* server = NULL;
  int i;
  alarm(240);  // whoever hangs is no orphan
  for (i = 0; argc == 5 && i < PARTS; ++i) {
    if (strcmp(argv[1], kParts[i].name) != 0) continue;
    kParts[i].body(atoi(argv[2]), atoi(argv[3]), argv[4]);
    return 0;
  }
  CHECK(argc == 1);
  listen.token = kToken;
  CHECK_OK(sluice_store_listen(&listen, &server));
  second_member(sluice_store_server_address(server));
  for (i = 0; i < PARTS; ++i) run_part(&kParts[i], sluice_store_server_address(server));
  sluice_store_server_destroy(server);
  return 0;
}
