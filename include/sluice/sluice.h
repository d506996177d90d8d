// The C API: what a C program calls, and what other languages load from libsluice.so.0.
//
//   sluice_world* world;
//   if (sluice_world_join(NULL, &world) != SLUICE_OK) puts(sluice_last_error());
//
// docs/c.md has an example, and the rules in full. In short:
//
// Calls return a sluice_status: 0 is OK, errors are negative, and sluice_last_error has the text.
// Nothing is thrown. Results go to the last arguments. If a call fails, handles and numbers are
// NULL or 0, and views are empty. Other structs, arrays, and numbers that say how much room there
// is are as they were.
//
// Structs begin with `size`, which their INIT macro sets. In all other fields zero is the default.
// So `struct S s = {0}; s.size = sizeof s;` is as good as the macro. Arrays of such structs have
// elements of one size.
//
// Times are in seconds, and a negative one is no limit. 0 is the default of an option. As an
// argument it is a look without waiting.
//
// Arguments are read during the call, and may go afterwards. The exceptions are memory of tensors,
// and callbacks with their `self`. A pointer that a caller gets belongs to the handle that it was
// got from, unless said otherwise. Each handle has a function that ends it, which takes NULL, too.
//
// Collective calls are made by all ranks of a session in one order. A mistake of one rank in such a
// call is an error on every rank. Other ranks notice some mistakes, such as a NULL handle, by their
// timeouts alone: docs/c.md lists them.
//
// Thread: any, unless said otherwise. A session and all that belongs to it is used by the thread
// that made it: others get SLUICE_FAILED_PRECONDITION.
#ifndef SLUICE_SLUICE_H_
#define SLUICE_SLUICE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SLUICE_CALL __attribute__((visibility("default")))
#else
#define SLUICE_CALL
#endif

// The version of this header. A library whose sluice_api_version is as large knows all that is
// here.
#define SLUICE_API_VERSION 1

// ---- Statuses.

typedef int32_t sluice_status;
enum {
  SLUICE_OK = 0,
  SLUICE_PENDING = 1,  // no error: a run is not over yet; there is no event
  SLUICE_END = 2,      // no error: a stream has nothing more
  SLUICE_CANCELLED = -1,
  SLUICE_UNKNOWN = -2,
  SLUICE_INVALID_ARGUMENT = -3,
  SLUICE_DEADLINE_EXCEEDED = -4,
  SLUICE_NOT_FOUND = -5,
  SLUICE_ALREADY_EXISTS = -6,
  SLUICE_PERMISSION_DENIED = -7,
  SLUICE_RESOURCE_EXHAUSTED = -8,  // out of memory, too
  SLUICE_FAILED_PRECONDITION = -9,
  SLUICE_ABORTED = -10,
  SLUICE_OUT_OF_RANGE = -11,
  SLUICE_UNIMPLEMENTED = -12,
  SLUICE_INTERNAL = -13,
  SLUICE_UNAVAILABLE = -14,
  SLUICE_DATA_LOSS = -15,
  SLUICE_UNAUTHENTICATED = -16
};

// SLUICE_API_VERSION of the library that is loaded.
SLUICE_CALL int32_t sluice_api_version(void);
// "0.2.0"
SLUICE_CALL const char* sluice_version(void);
// "DEADLINE_EXCEEDED"; "UNKNOWN" of what is no status. Lives for ever.
SLUICE_CALL const char* sluice_status_name(sluice_status status);
// The text of the error of this thread's last call that failed; "" before the first. Names tensors
// and ranks. Valid until this thread's next call that fails.
SLUICE_CALL const char* sluice_last_error(void);
// A field of that error, for programs: "ranks" of the session as "0-2, 5", the name of the first
// "tensor", the "epoch" that could not begin. NULL if the error names none. Valid as long.
SLUICE_CALL const char* sluice_last_error_field(const char* field);
// For callbacks, before they return an error: its text.
SLUICE_CALL void sluice_set_error(const char* text);

// ---- Tensors.

// Types of elements. A bool is one byte. Types with x2 hold two numbers in a byte.
enum {
  SLUICE_NO_DTYPE = 0,
  SLUICE_F64 = 1,
  SLUICE_F32 = 2,
  SLUICE_F16 = 3,
  SLUICE_BF16 = 4,
  SLUICE_F8E4M3 = 5,
  SLUICE_F8E5M2 = 6,
  SLUICE_I64 = 7,
  SLUICE_I32 = 8,
  SLUICE_I8 = 9,
  SLUICE_U8 = 10,
  SLUICE_I16 = 11,
  SLUICE_U16 = 12,
  SLUICE_U32 = 13,
  SLUICE_U64 = 14,
  SLUICE_BOOL = 15,
  SLUICE_F8E8M0 = 16,
  SLUICE_F4E2M1X2 = 17,
  SLUICE_I4X2 = 18,
  SLUICE_F8E4M3FNUZ = 19,
  SLUICE_F8E5M2FNUZ = 20,
  SLUICE_C64 = 21,
  SLUICE_C128 = 22
};

// Bytes of an element; 0 if there is no such type.
SLUICE_CALL int64_t sluice_dtype_bytes(int32_t dtype);
// "bf16"; NULL if there is no such type. Lives for ever.
SLUICE_CALL const char* sluice_dtype_name(int32_t dtype);
// Reads "bf16", or safetensors' "BF16".
SLUICE_CALL sluice_status sluice_dtype_parse(const char* name, int32_t* dtype);

// Tensors have up to this many dimensions. A scalar has none: its `shape` is not looked at, and
// `offset` of its boxes. Memory of one element in one dimension may be a scalar's, too.
#define SLUICE_NDIM_MAX 8

// Strided memory of one rank, with DLPack's fields. This struct never changes. Element (p_0, p_1,
// ...) lies at data + byte_offset + sluice_dtype_bytes(dtype) * sum of p_d * strides[d].
typedef struct {
  void* data;  // NULL: no memory yet
  int64_t byte_offset;
  const int64_t* shape;    // `ndim` numbers of elements
  const int64_t* strides;  // in elements, not negative; NULL: dense, row-major
  int32_t ndim;
  int32_t dtype;
  int32_t device;  // DLPack's DLDeviceType; 0 or 1: host memory
  int32_t ordinal;
} sluice_view;

// A rank's memory of one tensor: one view, or a view for each of the rank's boxes, in their order.
// None: the rank has nothing of the tensor, or will supply memory later.
typedef struct {
  const sluice_view* views;
  int64_t count;
} sluice_views;

// Between a view and DLPack's DLTensor, which stands first in a DLManagedTensor. `shape` and
// `strides` stay the property of whoever made the given one. SLUICE_INVALID_ARGUMENT: there is no
// such dtype at the other side.
SLUICE_CALL sluice_status sluice_view_from_dltensor(const void* dl_tensor, sluice_view* view);
SLUICE_CALL sluice_status sluice_view_to_dltensor(const sluice_view* view, void* dl_tensor);

// Global indices [offset[d], offset[d] + shape[d]) of each dimension d.
typedef struct {
  const int64_t* offset;
  const int64_t* shape;
  int32_t ndim;
  int32_t rank;  // who holds it
} sluice_box;

// How a tensor lies over ranks: over a mesh, or in boxes. docs/layouts.md has the rules.
typedef struct {
  size_t size;
  const int64_t* mesh;     // `mesh_ndim` numbers of ranks
  const int32_t* ranks;    // as many as their product, row-major; NULL: 0, 1, 2, ...
  const char* placements;  // one for each mesh dimension: "S(0),R"; also SS(d,k) and P(sum)
  const int32_t* order;    // of the mesh dimensions' visits; NULL: left to right
  // For a slice of a larger tensor: the larger one's shape, and where the slice begins in it; or
  // NULL. As many numbers as the tensor has dimensions.
  const int64_t* whole;
  const int64_t* offset;
  // In place of all the others. For sluice_compile and checkpoints: those of all ranks. For
  // sluice_connect: each rank gives its own.
  const sluice_box* boxes;
  int64_t num_boxes;
  int32_t mesh_ndim;
  int32_t reserved;  // 0
} sluice_layout;
#define SLUICE_LAYOUT_INIT \
  { sizeof(sluice_layout), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0 }

// The shape of a rank's local tensor, of `ndim` numbers; all 0 if the rank is not in the mesh. Not
// for boxes.
SLUICE_CALL sluice_status sluice_local_shape(const sluice_layout* layout, int32_t ndim,
                                             const int64_t* shape, int32_t rank,
                                             int64_t* local_shape);

// ---- Stores: small tables where ranks meet.

typedef struct sluice_store sluice_store;
typedef struct sluice_store_server sluice_store_server;

typedef struct {
  size_t size;
  const char* bind;   // address or name of this host; NULL: 127.0.0.1; "": all interfaces
  const char* token;  // required beyond the loopback interface
  int32_t port;       // 0: any free one
  int32_t reserved;   // 0
} sluice_listen_options;
#define SLUICE_LISTEN_OPTIONS_INIT \
  { sizeof(sluice_listen_options), NULL, NULL, 0, 0 }

// A store that other processes connect to, on a thread of its own. NULL options: the defaults.
SLUICE_CALL sluice_status sluice_store_listen(const sluice_listen_options* options,
                                              sluice_store_server** server);
// "tcp://HOST:PORT". Valid as long as the server.
SLUICE_CALL const char* sluice_store_server_address(const sluice_store_server* server);
SLUICE_CALL void sluice_store_server_destroy(sluice_store_server* server);

typedef struct {
  size_t size;
  const char* token;
  double timeout_s;          // of connecting, and of each answer; 0: 30
  double connect_timeout_s;  // of the first connecting alone; 0: timeout_s
} sluice_connect_store_options;
#define SLUICE_CONNECT_STORE_OPTIONS_INIT \
  { sizeof(sluice_connect_store_options), NULL, 0, 0 }

// A connection to a server at "tcp://HOST:PORT". Waits for one that does not listen yet. NULL
// options: the defaults.
SLUICE_CALL sluice_status sluice_store_connect(const char* address,
                                               const sluice_connect_store_options* options,
                                               sluice_store** store);
// A table in this process.
SLUICE_CALL sluice_status sluice_store_in_memory(sluice_store** store);

// The answer of a caller's own store: one value for get and compare_set, entries for list. Copies
// what it is given. To be called within the callback only.
typedef struct sluice_reply sluice_reply;
SLUICE_CALL sluice_status sluice_reply_value(sluice_reply* reply, const void* value, size_t bytes);
SLUICE_CALL sluice_status sluice_reply_entry(sluice_reply* reply, const void* key, size_t key_bytes,
                                             const void* value, size_t bytes);

// A caller's own store. Any thread calls it, several at once, and no call waits for the end of
// another. Each call happens at one moment between its start and its end. Keys (to 512 bytes) and
// values (to 64 KiB) are bytes of any content. An empty value stands for none. All but `destroy`
// are required. They return a status. A store that cannot be reached is SLUICE_UNAVAILABLE.
typedef struct {
  size_t size;
  void* self;
  // An empty value removes the key.
  sluice_status (*set)(void* self, const void* key, size_t key_bytes, const void* value,
                       size_t bytes);
  // Waits until the key has a value. SLUICE_DEADLINE_EXCEEDED after the timeout; -1: no limit.
  sluice_status (*get)(void* self, const void* key, size_t key_bytes, double timeout_s,
                       sluice_reply* value);
  // Adds to the decimal number that the value is; no value counts as 0.
  sluice_status (*add)(void* self, const void* key, size_t key_bytes, int64_t delta, int64_t* sum);
  // Sets the key to `desired` if its value is `expected`. Replies the value afterwards.
  sluice_status (*compare_set)(void* self, const void* key, size_t key_bytes, const void* expected,
                               size_t expected_bytes, const void* desired, size_t desired_bytes,
                               sluice_reply* value);
  // All entries whose keys begin with `prefix`, in any order.
  sluice_status (*list)(void* self, const void* prefix, size_t prefix_bytes, sluice_reply* entries);
  // Nobody calls any more. NULL: nothing to do.
  void (*destroy)(void* self);
} sluice_store_calls;
#define SLUICE_STORE_CALLS_INIT \
  { sizeof(sluice_store_calls), NULL, NULL, NULL, NULL, NULL, NULL, NULL }

SLUICE_CALL sluice_status sluice_store_create(const sluice_store_calls* calls,
                                              sluice_store** store);

// For what ranks have to tell each other beside tensors. An empty value removes the key.
SLUICE_CALL sluice_status sluice_store_set(sluice_store* store, const char* key, const void* value,
                                           size_t bytes);
// Waits for a value. `bytes`: room at `value` before the call, and the value's length after it.
// SLUICE_OUT_OF_RANGE: there is less room than that.
SLUICE_CALL sluice_status sluice_store_get(sluice_store* store, const char* key, double timeout_s,
                                           void* value, size_t* bytes);
SLUICE_CALL sluice_status sluice_store_add(sluice_store* store, const char* key, int64_t delta,
                                           int64_t* sum);
// Worlds and sessions that were made with the store keep it as long as they need it.
SLUICE_CALL void sluice_store_destroy(sluice_store* store);

// ---- Worlds: processes that meet at a store, in one job or in several. A world takes one call at
// a time: SLUICE_FAILED_PRECONDITION, where another thread is in one.

typedef struct sluice_world sluice_world;

typedef struct {
  const char* role;
  int32_t count;     // of its members; 0: as many as its own members say
  int32_t reserved;  // 0
} sluice_role;

typedef struct {
  size_t size;
  const char* store;        // "tcp://HOST:PORT"
  sluice_store* own_store;  // in place of `store`
  const char* token;  // links ask for it, too; NULL: that with which `own_store` was connected
  const char* token_file;
  const char* name;  // tells worlds apart that meet at one store; NULL: "sluice"
  const char* role;  // this member's; NULL: "member"
  // All roles, in one order on all members; none: this member's alone.
  const sluice_role* roles;
  int64_t num_roles;
  const char* wires;       // "auto", "ucx" or "tcp"; NULL: "auto"
  const char* bind;        // at which others reach this member; NULL: at all addresses of its host
  double timeout_s;        // how long calls wait for other members; 0: no limit
  double store_timeout_s;  // how long to wait for the store; 0: 300
  double lease_s;          // after how long a silent member is lost, 1 to 3600; 0: 10
  int32_t rank;            // this member, of `count` members of its role; -2: any that is free
  int32_t count;
  int32_t serve;  // the store: 1: this member does; -1: it does not; 0: as WorldOptions::serve says
  // 1: what is not set here is taken from the environment, as docs/joining.md says. `rank` counts
  // as set where `count` is.
  int32_t from_environment;
} sluice_world_options;
#define SLUICE_WORLD_OPTIONS_INIT                                                                \
  {                                                                                              \
    sizeof(sluice_world_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, \
        0, 0, 0, 0, 0                                                                            \
  }

// 1 if the environment says which member of which world this process is.
SLUICE_CALL int32_t sluice_environment_has_world(void);
// Registers this process as a member. Waits for the store, and for no other member. NULL options:
// all from the environment.
SLUICE_CALL sluice_status sluice_world_join(const sluice_world_options* options,
                                            sluice_world** world);
// Leaves the world. Its sessions stay. If this member serves the store, the store ends.
SLUICE_CALL void sluice_world_destroy(sluice_world* world);

// Waits until nobody is missing.
SLUICE_CALL sluice_status sluice_world_wait(sluice_world* world, double timeout_s);
// Names the members that are waited for: "server 1, server 3". Valid until the next call of this
// function with this world.
SLUICE_CALL sluice_status sluice_world_missing(sluice_world* world, const char** text);

// Which members to list, in the order of ranks.
enum {
  SLUICE_MEMBERS_NOW = 0,      // that have come and have not left
  SLUICE_MEMBERS_EPOCH = 1,    // of this member's last epoch
  SLUICE_MEMBERS_JOINERS = 2,  // that are there now and not in this epoch
};

typedef struct {
  size_t size;
  const char* role;
  const char* host;
  int32_t rank;  // within its role
  int32_t pid;
  int32_t alive;  // 0: it is lost
  int32_t reserved;
} sluice_member;
#define SLUICE_MEMBER_INIT \
  { sizeof(sluice_member), NULL, NULL, 0, 0, 0, 0 }

// Looks who is there, for sluice_world_member to tell.
SLUICE_CALL sluice_status sluice_world_members(sluice_world* world, int32_t which, int64_t* count);
// The i-th of them. Valid until the next sluice_world_members.
SLUICE_CALL sluice_status sluice_world_member(sluice_world* world, int64_t i,
                                              sluice_member* member);
// A member's rank in the sessions of sluice_world_session; -1: there is none, or not known yet.
SLUICE_CALL int32_t sluice_world_rank(sluice_world* world, const char* role, int32_t rank);
// "" for a store of the caller's. Valid as long as the world.
SLUICE_CALL const char* sluice_world_store_address(const sluice_world* world);

// The number of this member's last epoch; 0: none yet, or no world.
SLUICE_CALL int64_t sluice_world_epoch(const sluice_world* world);
// Says which version is the last that this epoch runs. The first call of any member counts.
SLUICE_CALL sluice_status sluice_world_end_epoch(sluice_world* world, int64_t after_version);
// The version that sluice_world_end_epoch has named; SLUICE_PENDING: none yet.
SLUICE_CALL sluice_status sluice_world_epoch_ends(sluice_world* world, int64_t* after_version);

// ---- Sessions: one rank's end of a group of ranks that move tensors.

typedef struct sluice_session sluice_session;

// Equal on all ranks, unless said otherwise.
typedef struct {
  size_t size;
  int64_t bucket_bytes;    // most bytes of one bucket; 0: automatic
  int64_t budget_buckets;  // most buckets that a rank holds at once; 0: 16; -1: no limit
  int64_t budget_bytes;    // and most bytes of staging; 0: automatic; -1: no limit
  int64_t trace_events;    // most stages that are recorded for a trace. May differ between ranks
  double timeout_s;        // how long a rank may see no progress; 0: 30
  double patience_s;       // how long late ranks are waited for; 0: no limit. May differ
  int32_t max_in_flight;   // most buckets of one channel at once; 0: automatic
  // 1: a thread of the session's own goes on with runs while the caller computes. May differ.
  int32_t progress_thread;
  int32_t no_coalesce;  // 1: tensors share no bucket
  int32_t no_direct;    // 1: ranks of one node send messages instead of copying
} sluice_session_options;
#define SLUICE_SESSION_OPTIONS_INIT \
  { sizeof(sluice_session_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// Collective, each: the ranks of the session make it at once. NULL options: the defaults. Errors
// are those of World::MakeFabric and Session::Create.

// The caller numbers the ranks. They meet at a store under a name that no other session of that
// store has: letters, digits, '_', '-' and '.'. They wait for each other for `patience_s`.
SLUICE_CALL sluice_status sluice_session_create(sluice_store* store, const char* group,
                                                int32_t rank, int32_t count,
                                                const sluice_session_options* options,
                                                sluice_session** session);
// A session of all members of a world: roles in declared order, and ranks within a role.
SLUICE_CALL sluice_status sluice_world_session(sluice_world* world,
                                               const sluice_session_options* options,
                                               sluice_session** session);

typedef struct {
  size_t size;
  // How many members of a role are enough. Other roles need all that were declared. Equal on all
  // members.
  const sluice_role* at_least;
  int64_t num_at_least;
  double timeout_s;  // in place of the world's; 0: the world's
} sluice_epoch_options;
#define SLUICE_EPOCH_OPTIONS_INIT \
  { sizeof(sluice_epoch_options), NULL, 0, 0 }

// A session of the members that are there now, without lost ones: the next epoch of the world. For
// worlds whose members come and go between transfers. NULL: the defaults.
SLUICE_CALL sluice_status sluice_world_next_session(sluice_world* world,
                                                    const sluice_session_options* options,
                                                    const sluice_epoch_options* epoch,
                                                    sluice_session** session);

// All ranks in one process, for tests: each rank's thread makes its session.
typedef struct sluice_local sluice_local;
SLUICE_CALL sluice_status sluice_local_create(int32_t count, sluice_local** local);
SLUICE_CALL sluice_status sluice_local_session(sluice_local* local, int32_t rank,
                                               const sluice_session_options* options,
                                               sluice_session** session);
SLUICE_CALL void sluice_local_destroy(sluice_local* local);

// -1: no session.
SLUICE_CALL int32_t sluice_session_rank(const sluice_session* session);
SLUICE_CALL int32_t sluice_session_count(const sluice_session* session);

// Ends the session's work. OK: no memory is in use any more, and no stream can be opened.
// SLUICE_FAILED_PRECONDITION: a run is in flight, or a stream is open.
SLUICE_CALL sluice_status sluice_session_close(sluice_session* session);
// Ends its streams and transfers, and frees it. Leases stay; during this call, none may be
// released. Runs that are not over: their memory must stay until the process ends, unless
// sluice_session_close was OK before. SLUICE_FAILED_PRECONDITION, and nothing is freed: another
// thread than the session's calls, or one is in a call of a stream.
SLUICE_CALL sluice_status sluice_session_destroy(sluice_session* session);

// Makes progress, without blocking.
SLUICE_CALL sluice_status sluice_poll(sluice_session* session);

// Memory that ranks of one node copy fastest. Collective; each rank asks for as much as it needs,
// or 0. Zero and page-aligned.
typedef struct sluice_memory sluice_memory;
SLUICE_CALL sluice_status sluice_allocate(sluice_session* session, int64_t bytes,
                                          sluice_memory** memory);
// NULL for 0 bytes. Valid as long as `memory`, which may outlive its session.
SLUICE_CALL void* sluice_memory_data(const sluice_memory* memory);
SLUICE_CALL void sluice_memory_destroy(sluice_memory* memory);

// Says on one line which wires carry bytes to which ranks. `bytes`: room at `text` before the call,
// and the length with its final zero after it. `text` may be NULL: to ask for the length.
// SLUICE_OUT_OF_RANGE: there is less room than that. Any thread.
SLUICE_CALL sluice_status sluice_session_report(const sluice_session* session, char* text,
                                                size_t* bytes);
// The trace that this rank has recorded, as JSON for Perfetto. Text as above.
// SLUICE_FAILED_PRECONDITION: `trace_events` is 0.
SLUICE_CALL sluice_status sluice_session_trace(sluice_session* session, char* text, size_t* bytes);

// Names live for ever. docs/c.md has all of them.
typedef struct {
  const char* name;
  double value;
} sluice_metric;

// `count`: room at `metrics` before the call, and how many there are after it. Fills in as many as
// there is room for. `metrics` may be NULL where there is none. So it is with all calls that give
// metrics; NULL for `count`: no metrics are asked for.
SLUICE_CALL sluice_status sluice_session_metrics(sluice_session* session, sluice_metric* metrics,
                                                 int64_t* count);
SLUICE_CALL sluice_status sluice_session_reset_metrics(sluice_session* session);

// ---- Transfers: compiled once, run many times. They end with their session.

typedef struct sluice_transfer sluice_transfer;

// Most windows and classes of priority.
#define SLUICE_WINDOW_MAX 65535
#define SLUICE_PRIORITY_MAX 3

// A tensor whose both sides are known everywhere.
typedef struct {
  size_t size;
  const char* name;
  const int64_t* shape;
  const sluice_layout* src;
  const sluice_layout* dst;
  int32_t ndim;
  int32_t src_dtype;
  int32_t dst_dtype;
  int32_t window;  // lower ones move before higher ones
} sluice_tensor;
#define SLUICE_TENSOR_INIT \
  { sizeof(sluice_tensor), NULL, NULL, NULL, NULL, 0, 0, 0, 0 }

// Collective. All ranks give the same tensors, in the same order. `priority`: 0, the most urgent,
// to SLUICE_PRIORITY_MAX.
SLUICE_CALL sluice_status sluice_compile(sluice_session* session, const sluice_tensor* tensors,
                                         int64_t num_tensors, int32_t priority,
                                         sluice_transfer** transfer);

// A tensor of which this rank has a part. All ranks of its layout's mesh give it, alike but for the
// views.
typedef struct {
  size_t size;
  const char* name;
  const int64_t* shape;  // of the whole tensor
  const sluice_layout* layout;
  sluice_views memory;  // must stay until runs that use it are over
  int32_t ndim;
  int32_t dtype;
  // 0: as the other side says, or window 0. -1: window 0, whatever the other side says.
  int32_t window;
  int32_t reserved;  // 0
} sluice_half;
#define SLUICE_HALF_INIT \
  { sizeof(sluice_half), NULL, NULL, NULL, {NULL, 0}, 0, 0, 0, 0 }

typedef struct {
  const char* target;
  const char* source;
} sluice_rename;

// The tensors that one rank has.
typedef struct {
  size_t size;
  const sluice_half* sources;
  int64_t num_sources;
  const sluice_half* targets;
  int64_t num_targets;
  // Names of targets and of their sources that differ. Renames of all ranks count together.
  const sluice_rename* renames;
  int64_t num_renames;
  int32_t priority;      // 0: as other ranks say
  int32_t late_targets;  // 1: this rank's targets may lack memory
  int32_t ignore_unused_sources;
  int32_t reserved;  // 0
} sluice_own;
#define SLUICE_OWN_INIT \
  { sizeof(sluice_own), NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, 0 }

// Collective. Each rank gives what it has, and sources meet targets by name.
SLUICE_CALL sluice_status sluice_connect(sluice_session* session, const sluice_own* own,
                                         sluice_transfer** transfer);
// Other memory for tensors of a connected transfer, by name, from the next run on. Only `name` and
// `memory` are looked at. All or none is bound.
SLUICE_CALL sluice_status sluice_rebind(sluice_transfer* transfer, const sluice_half* sources,
                                        int64_t num_sources, const sluice_half* targets,
                                        int64_t num_targets);

// Counts a transfer's tensors (-1: no transfer), and names them (NULL: there is none such). The
// tensors of a connected transfer have the targets' names.
SLUICE_CALL int64_t sluice_transfer_count(const sluice_transfer* transfer);
SLUICE_CALL const char* sluice_transfer_name(const sluice_transfer* transfer, int64_t tensor);
SLUICE_CALL sluice_status sluice_transfer_metrics(sluice_transfer* transfer, sluice_metric* metrics,
                                                  int64_t* count);
// Collective. Ends the transfer, and frees the handle if that was OK. No run may be in flight.
SLUICE_CALL sluice_status sluice_transfer_drop(sluice_transfer* transfer);

// ---- Runs.

// Counted from 1 in each session; equal on all ranks. The newest 4096 of a session are known.
typedef int64_t sluice_run;

typedef struct {
  size_t size;
  // For a connected transfer: what the caller calls the content. Above that of the run before; 0:
  // none.
  int64_t version;
  int32_t events;  // 1: sluice_next_event tells of this run
  int32_t late;    // 1: destinations without memory are supplied later. Implies `events`
} sluice_start_options;
#define SLUICE_START_OPTIONS_INIT \
  { sizeof(sluice_start_options), 0, 0, 0 }

// Collective; does not block. For a compiled transfer, `src` and `dst` have an entry for each
// tensor; NULL: this rank has nothing of that side. Their memory must stay until the run is over.
// For a connected transfer both are NULL. Views of a transfer's first run are compared: if one is
// wrong, sluice_wait returns SLUICE_INVALID_ARGUMENT on every rank. Later they are an error of this
// call, which ends the session; so are wrong options. NULL options: the defaults.
// SLUICE_FAILED_PRECONDITION, of this rank alone: 16 runs are in flight. Start again after a wait.
SLUICE_CALL sluice_status sluice_start(sluice_transfer* transfer, const sluice_views* src,
                                       const sluice_views* dst, const sluice_start_options* options,
                                       sluice_run* run);
// Waits until this rank's part of the run is over. SLUICE_PENDING: it is not, after the timeout.
SLUICE_CALL sluice_status sluice_wait(sluice_session* session, sluice_run run, double timeout_s);
// 1 if sluice_wait would not wait; -1: no session. Any thread.
SLUICE_CALL int32_t sluice_is_done(const sluice_session* session, sluice_run run);
// Memory for a tensor of a run with late destinations.
SLUICE_CALL sluice_status sluice_supply(sluice_session* session, sluice_run run, int64_t tensor,
                                        const sluice_views* memory);
// Collective; does not block. Gives the run up. Go on to wait for it: SLUICE_CANCELLED.
SLUICE_CALL sluice_status sluice_cancel(sluice_session* session, sluice_run run);
// The last version that a connected transfer was started with; 0: none, or no such transfer.
SLUICE_CALL int64_t sluice_transfer_version(const sluice_transfer* transfer);

enum {
  SLUICE_NEEDS_MEMORY = 0,  // a destination has to be supplied
  SLUICE_TENSOR_DONE = 1,   // a destination is complete, and a source may change
  SLUICE_RUN_FAILED = 2     // or was cancelled: `status` says why
};

typedef struct {
  size_t size;
  sluice_run run;
  int64_t tensor;       // -1 for SLUICE_RUN_FAILED
  const char* message;  // of SLUICE_RUN_FAILED; valid until the next sluice_next_event
  int32_t kind;
  sluice_status status;
} sluice_event;
#define SLUICE_EVENT_INIT \
  { sizeof(sluice_event), 0, 0, NULL, 0, 0 }

// The oldest event not yet taken. SLUICE_PENDING: there is none.
SLUICE_CALL sluice_status sluice_next_event(sluice_session* session, sluice_event* event);

// ---- Checkpoints of safetensors.

typedef struct {
  size_t size;
  const char* name;
  const int64_t* shape;
  const sluice_layout* layout;
  sluice_views memory;
  int32_t ndim;
  int32_t dtype;
  int32_t file_dtype;  // what a save writes; 0: `dtype`
  int32_t reserved;    // 0
} sluice_checkpoint_tensor;
#define SLUICE_CHECKPOINT_TENSOR_INIT \
  { sizeof(sluice_checkpoint_tensor), NULL, NULL, NULL, {NULL, 0}, 0, 0, 0, 0 }

// An array in a file: a tensor of a checkpoint, or a box of one. As sluice::CheckpointEntry.
typedef struct {
  size_t size;
  const char* tensor;
  const char* file;        // a path below the place that the load names
  const int64_t* shape;    // of the array
  const int64_t* strides;  // in elements; NULL: row-major
  const int64_t* offset;   // where in the tensor the array begins; NULL: at 0
  int64_t begin;           // bytes, in the file
  int64_t bytes;
  int32_t ndim;  // 0: a scalar
  int32_t dtype;
} sluice_checkpoint_entry;
#define SLUICE_CHECKPOINT_ENTRY_INIT \
  { sizeof(sluice_checkpoint_entry), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0 }

typedef struct {
  size_t size;
  const char* ca_file;       // certificates to trust; NULL: the system's
  int64_t budget_bytes;      // of pieces; 0: 256 MiB
  int64_t slots;             // most pieces at once; 0: as many as the budget holds
  int64_t piece_bytes;       // 0: 8 MiB
  int64_t shard_bytes_max;   // of one file of a save; 0: 5 GiB
  double timeout_s;          // 0: 60
  double backoff_s;          // before a read is tried again; 0: 0.05
  double request_timeout_s;  // 0: 20
  int32_t attempts_max;      // 0: 4
  int32_t connections;       // 0: 64
  // Loads: the arrays of a checkpoint of another format than safetensors; NULL: none.
  const sluice_checkpoint_entry* catalog;
  int64_t num_entries;
  const char* s3_endpoint;  // of "s3://BUCKET/PREFIX"; NULL: as include/sluice/s3.h says
  const char* s3_region;
} sluice_checkpoint_options;
#define SLUICE_CHECKPOINT_OPTIONS_INIT \
  { sizeof(sluice_checkpoint_options), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, NULL, NULL }

// Collective; blocks. `uri`: "file:DIR", "buffered:DIR", "mmap:DIR", "http://HOST/BASE/" or
// "s3://BUCKET/PREFIX".
// Metrics may be NULL.
SLUICE_CALL sluice_status sluice_checkpoint_load(sluice_session* session, const char* uri,
                                                 const sluice_checkpoint_tensor* tensors,
                                                 int64_t num_tensors,
                                                 const sluice_checkpoint_options* options,
                                                 sluice_metric* metrics, int64_t* count);
SLUICE_CALL sluice_status sluice_checkpoint_save(sluice_session* session, const char* directory,
                                                 const sluice_checkpoint_tensor* tensors,
                                                 int64_t num_tensors,
                                                 const sluice_checkpoint_options* options,
                                                 sluice_metric* metrics, int64_t* count);

// ---- Streams of data shards. With a progress thread, another thread than the session's may be the
// stream's: the first one that calls sluice_stream_next.

typedef struct sluice_stream sluice_stream;
typedef struct sluice_lease sluice_lease;

enum {
  SLUICE_FORMAT_INDEX = 0,
  SLUICE_FORMAT_RAW = 1,
  SLUICE_FORMAT_NPY = 2,
  SLUICE_FORMAT_SAFETENSORS = 3
};
enum { SLUICE_GENERATE_FREE = 0, SLUICE_GENERATE_AFTER_UPDATE = 1, SLUICE_GENERATE_ONE_AHEAD = 2 };

// value * scale + bias, on the way to the consumer. docs/transforms.md has the rules.
typedef struct {
  size_t size;
  const float* channel_scale;  // `channels` numbers in place of `scale` and `bias`; or NULL
  const float* channel_bias;
  const int64_t* shape;  // {height, width, channels} of an item; NULL: as its format says
  int64_t channels;
  int64_t crop_top;
  int64_t crop_left;
  int64_t crop_height;  // 0: no crop
  int64_t crop_width;
  int32_t src;  // dtypes
  int32_t dst;
  float scale;  // 0: 1
  float bias;
  int32_t planar;    // 1: {channels, height, width}
  int32_t reserved;  // 0
} sluice_transform;
#define SLUICE_TRANSFORM_INIT \
  { sizeof(sluice_transform), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// Equal on all ranks, but for what include/sluice/stream.h lets differ. Zero means the default of
// stream.h, unless the field says otherwise.
typedef struct {
  size_t size;
  const char* uri;  // "file:DIR", "mmap:DIR", "http://HOST/BASE/", ...; NULL: `generate`
  // Writes item number `item` into `into`. `bytes`: of the item, at most `capacity`; set to
  // `capacity` before the call, and looked at only where items are `sized`. Runs on threads of the
  // stream, `generator_threads` at once. `self` stays until the stream is closed.
  sluice_status (*generate)(void* self, int64_t item, void* into, int64_t capacity, int64_t* bytes);
  void* self;
  const char* ca_file;
  const void* cursor;  // where to go on: of sluice_stream_cursor or sluice_merge_cursors; or NULL
  size_t cursor_bytes;
  const sluice_transform* transform;  // or NULL
  int64_t item_bytes;
  int64_t generator_items;
  int64_t generate_ahead;
  int64_t first;  // this rank's items of each epoch: first, first + step, ... below end
  int64_t step;
  int64_t end;  // 0: all
  uint64_t seed;
  int64_t shuffle_block_items;
  int64_t epochs;
  int64_t budget_bytes;
  int64_t slots;
  int64_t piece_bytes;
  int64_t batch_items;
  double timeout_s;
  double backoff_s;
  double request_timeout_s;
  double hedge_quantile;
  double hedge_extra_share_max;
  int32_t format;
  int32_t generate_order;
  int32_t sized;
  int32_t generator_threads;
  int32_t connections;
  int32_t shuffle;
  int32_t as_they_come;  // 1: not in the order of the epoch
  int32_t no_exchange;   // 1: each rank reads what it needs
  int32_t hedge;
  int32_t attempts_max;
  int32_t buffers;
  int32_t reserved;  // 0
  const char* s3_endpoint;
  const char* s3_region;
  const char* index;  // the text of an index.json in place of the one beside the objects; or NULL
} sluice_stream_options;
#define SLUICE_STREAM_OPTIONS_INIT                                                                \
  {                                                                                               \
    sizeof(sluice_stream_options), NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL        \
  }

// Collective; blocks until all ranks know the items. No run may be in flight.
SLUICE_CALL sluice_status sluice_stream_open(sluice_session* session,
                                             const sluice_stream_options* options,
                                             sluice_stream** stream);
// The next batch, of which the caller has the memory until it gives the lease back. SLUICE_END:
// there is nothing more. SLUICE_FAILED_PRECONDITION: all buffers are leased.
SLUICE_CALL sluice_status sluice_stream_next(sluice_stream* stream, sluice_lease** lease);
// 1 if sluice_stream_next would not wait; -1: no stream.
SLUICE_CALL int32_t sluice_stream_ready(const sluice_stream* stream);
// The trainer's update has ended: for generators in SLUICE_GENERATE_AFTER_UPDATE and ONE_AHEAD.
SLUICE_CALL sluice_status sluice_stream_end_update(sluice_stream* stream);
// Items that this rank gets in all; -1: no stream.
SLUICE_CALL int64_t sluice_stream_items(const sluice_stream* stream);
// A cursor: the items that have been given back so far, as bytes to go on from. `bytes` as in
// sluice_session_report, but without a final zero.
SLUICE_CALL sluice_status sluice_stream_cursor(const sluice_stream* stream, void* cursor,
                                               size_t* bytes);
SLUICE_CALL sluice_status sluice_stream_metrics(sluice_stream* stream, sluice_metric* metrics,
                                                int64_t* count);
// Frees the handle; leases stay. NULL is OK. SLUICE_FAILED_PRECONDITION: of another thread, or in
// a generator, which cannot use streams.
SLUICE_CALL sluice_status sluice_stream_close(sluice_stream* stream);
// One cursor out of those of all ranks, for any number of ranks.
SLUICE_CALL sluice_status sluice_merge_cursors(const void* const* cursors,
                                               const size_t* cursor_bytes, int64_t num_cursors,
                                               void* merged, size_t* bytes);

// Items of a lease: how many (-1: no lease), and each one's number and epoch (-1: no such item).
SLUICE_CALL int64_t sluice_lease_items(const sluice_lease* lease);
SLUICE_CALL int64_t sluice_lease_item(const sluice_lease* lease, int64_t i);
SLUICE_CALL int64_t sluice_lease_epoch(const sluice_lease* lease, int64_t i);
// Memory of the i-th item; -1: of all, one behind the other, where they are of one shape. It and
// its shape are valid as long as the lease.
SLUICE_CALL sluice_status sluice_lease_view(sluice_lease* lease, int64_t i, sluice_view* view);
// The same as a DLManagedTensor*, which takes the lease over: `lease` is freed, and the tensor's
// deleter gives the memory back, in the stream's thread.
SLUICE_CALL sluice_status sluice_lease_to_dlpack(sluice_lease* lease, int64_t i,
                                                 void** managed_tensor);
// Gives the memory back, and frees the handle. NULL is OK. SLUICE_FAILED_PRECONDITION: of another
// thread than the one that took it.
SLUICE_CALL sluice_status sluice_lease_release(sluice_lease* lease);

#ifdef __cplusplus
}
#endif

#endif  // SLUICE_SLUICE_H_
