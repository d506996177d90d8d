// Calls of the C API by themselves: NULL, sizes of structs, threads, values, and stores.
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "c/check.h"
#include "c/own_store.h"
#include "c/ranks.h"
#include "c/tests.h"
#include "sluice/sluice.h"

#define REFUSES(call) CHECK_FAILS(call, SLUICE_INVALID_ARGUMENT, "is NULL")

static void nothing_ends_well(void) {
  CHECK_OK(sluice_session_destroy(NULL));
  CHECK_OK(sluice_transfer_drop(NULL));
  CHECK_OK(sluice_stream_close(NULL));
  CHECK_OK(sluice_lease_release(NULL));
  sluice_local_destroy(NULL);
  sluice_memory_destroy(NULL);
  sluice_store_destroy(NULL);
  sluice_store_server_destroy(NULL);
  sluice_world_destroy(NULL);
  sluice_set_error(NULL);
  CHECK(sluice_session_rank(NULL) == -1 && sluice_session_count(NULL) == -1);
  CHECK(sluice_transfer_count(NULL) == -1 && sluice_transfer_name(NULL, 0) == NULL);
  CHECK(sluice_transfer_version(NULL) == 0 && sluice_is_done(NULL, 1) == -1);
  CHECK(sluice_stream_ready(NULL) == -1 && sluice_stream_items(NULL) == -1);
  CHECK(sluice_lease_items(NULL) == -1 && sluice_lease_item(NULL, 0) == -1);
  CHECK(sluice_lease_epoch(NULL, 0) == -1);
  CHECK(sluice_memory_data(NULL) == NULL);
  CHECK(sluice_world_rank(NULL, "server", 0) == -1 && sluice_world_epoch(NULL) == 0);
  CHECK(strcmp(sluice_world_store_address(NULL), "") == 0);
  CHECK(strcmp(sluice_store_server_address(NULL), "") == 0);
}

static void null_is_refused(void) {
  sluice_session* session = NULL;
  sluice_transfer* transfer = NULL;
  sluice_stream* stream = NULL;
  sluice_memory* memory = NULL;
  sluice_local* local = NULL;
  sluice_lease* lease = NULL;
  sluice_store* store = NULL;
  sluice_world* world = NULL;
  sluice_view view;
  sluice_run run = 1;
  const char* text = NULL;
  void* managed = NULL;
  size_t bytes = 0;
  int64_t number = 0;
  int32_t dtype = 5;
  REFUSES(sluice_dtype_parse(NULL, &dtype));
  CHECK(dtype == SLUICE_NO_DTYPE);
  REFUSES(sluice_dtype_parse("f32", NULL));
  REFUSES(sluice_view_from_dltensor(NULL, &view));
  REFUSES(sluice_view_from_dltensor(&view, NULL));
  REFUSES(sluice_view_to_dltensor(NULL, &view));
  REFUSES(sluice_view_to_dltensor(&view, NULL));
  REFUSES(sluice_local_shape(NULL, 1, &number, 0, &number));
  REFUSES(sluice_local_shape(NULL, 1, &number, 0, NULL));
  REFUSES(sluice_store_listen(NULL, NULL));
  REFUSES(sluice_store_connect(NULL, NULL, &store));
  REFUSES(sluice_store_connect("tcp://127.0.0.1:1", NULL, NULL));
  REFUSES(sluice_store_in_memory(NULL));
  REFUSES(sluice_store_create(NULL, &store));
  REFUSES(sluice_store_create(NULL, NULL));
  REFUSES(sluice_store_set(NULL, "key", "value", 5));
  REFUSES(sluice_store_get(NULL, "key", 0, NULL, &bytes));
  REFUSES(sluice_store_add(NULL, "key", 1, &number));
  REFUSES(sluice_reply_value(NULL, "value", 5));
  REFUSES(sluice_reply_entry(NULL, "key", 3, "value", 5));
  REFUSES(sluice_world_join(NULL, NULL));
  REFUSES(sluice_world_wait(world, 0));
  REFUSES(sluice_world_missing(world, &text));
  REFUSES(sluice_world_missing(world, NULL));
  REFUSES(sluice_world_members(world, SLUICE_MEMBERS_NOW, &number));
  REFUSES(sluice_world_members(world, SLUICE_MEMBERS_NOW, NULL));
  REFUSES(sluice_world_member(world, 0, NULL));
  REFUSES(sluice_world_end_epoch(world, 1));
  REFUSES(sluice_world_epoch_ends(world, &number));
  REFUSES(sluice_world_session(world, NULL, &session));
  REFUSES(sluice_world_session(world, NULL, NULL));
  REFUSES(sluice_world_next_session(world, NULL, NULL, &session));
  REFUSES(sluice_session_create(NULL, "group", 0, 1, NULL, &session));
  REFUSES(sluice_local_create(2, NULL));
  REFUSES(sluice_local_session(local, 0, NULL, &session));
  REFUSES(sluice_session_close(session));
  REFUSES(sluice_poll(session));
  REFUSES(sluice_allocate(session, 1, &memory));
  REFUSES(sluice_session_report(session, NULL, &bytes));
  REFUSES(sluice_session_trace(session, NULL, &bytes));
  REFUSES(sluice_session_metrics(session, NULL, &number));
  REFUSES(sluice_session_reset_metrics(session));
  REFUSES(sluice_compile(session, NULL, 0, 0, &transfer));
  REFUSES(sluice_connect(session, NULL, &transfer));
  REFUSES(sluice_rebind(transfer, NULL, 0, NULL, 0));
  REFUSES(sluice_transfer_metrics(transfer, NULL, &number));
  REFUSES(sluice_start(transfer, NULL, NULL, NULL, &run));
  REFUSES(sluice_wait(session, 1, 0));
  REFUSES(sluice_supply(session, 1, 0, NULL));
  REFUSES(sluice_cancel(session, 1));
  REFUSES(sluice_next_event(session, NULL));
  REFUSES(sluice_checkpoint_load(session, "file:x", NULL, 0, NULL, NULL, NULL));
  REFUSES(sluice_checkpoint_save(session, "x", NULL, 0, NULL, NULL, NULL));
  REFUSES(sluice_stream_open(session, NULL, &stream));
  REFUSES(sluice_stream_next(stream, &lease));
  REFUSES(sluice_stream_next(stream, NULL));
  REFUSES(sluice_stream_end_update(stream));
  REFUSES(sluice_stream_cursor(stream, NULL, &bytes));
  REFUSES(sluice_stream_metrics(stream, NULL, &number));
  REFUSES(sluice_merge_cursors(NULL, NULL, 1, NULL, &bytes));
  REFUSES(sluice_lease_view(lease, 0, &view));
  REFUSES(sluice_lease_view(lease, 0, NULL));
  REFUSES(sluice_lease_to_dlpack(lease, 0, &managed));
  CHECK(session == NULL && transfer == NULL && stream == NULL && lease == NULL && store == NULL);
}

// What a variable held before the call is gone where the call fails.
static void failed_calls_give_nothing(void) {
  char stale;
  sluice_transfer *compiled = (sluice_transfer*)&stale, *connected = (sluice_transfer*)&stale;
  sluice_stream* stream = (sluice_stream*)&stale;
  sluice_memory* memory = (sluice_memory*)&stale;
  sluice_run run = 7;
  int64_t sum = 7;
  REFUSES(sluice_compile(NULL, NULL, 0, 0, &compiled));
  REFUSES(sluice_connect(NULL, NULL, &connected));
  REFUSES(sluice_stream_open(NULL, NULL, &stream));
  REFUSES(sluice_allocate(NULL, 1, &memory));
  REFUSES(sluice_start(NULL, NULL, NULL, NULL, &run));
  REFUSES(sluice_store_add(NULL, "key", 1, &sum));
  CHECK(compiled == NULL && connected == NULL && stream == NULL && memory == NULL);
  CHECK(run == 0 && sum == 0);
}

static void statuses_have_names(void) {
  sluice_status status;
  CHECK(strcmp(sluice_status_name(SLUICE_OK), "OK") == 0);
  CHECK(strcmp(sluice_status_name(SLUICE_PENDING), "PENDING") == 0);
  CHECK(strcmp(sluice_status_name(SLUICE_END), "END") == 0);
  CHECK(strcmp(sluice_status_name(SLUICE_DEADLINE_EXCEEDED), "DEADLINE_EXCEEDED") == 0);
  CHECK(strcmp(sluice_status_name(SLUICE_UNAUTHENTICATED), "UNAUTHENTICATED") == 0);
  for (status = -40; status < 40; ++status) CHECK(strlen(sluice_status_name(status)) > 1);
  CHECK(strcmp(sluice_status_name(-17), "UNKNOWN") == 0);
  CHECK(strcmp(sluice_status_name(INT32_MIN), "UNKNOWN") == 0);
}

static void dtypes_have_names(void) {
  int32_t dtype, parsed = 0;
  CHECK(sluice_dtype_bytes(SLUICE_BF16) == 2 && sluice_dtype_bytes(SLUICE_C128) == 16);
  CHECK(sluice_dtype_bytes(0) == 0 && sluice_dtype_bytes(23) == 0 && sluice_dtype_bytes(-1) == 0);
  CHECK(sluice_dtype_name(0) == NULL && sluice_dtype_name(23) == NULL);
  for (dtype = SLUICE_F64; dtype <= SLUICE_C128; ++dtype) {
    CHECK_OK(sluice_dtype_parse(sluice_dtype_name(dtype), &parsed));
    CHECK(parsed == dtype);
  }
  CHECK_OK(sluice_dtype_parse("BF16", &parsed));
  CHECK(parsed == SLUICE_BF16);
  CHECK_FAILS(sluice_dtype_parse("f33", &parsed), SLUICE_INVALID_ARGUMENT, "f33");
}

// DLPack's DLTensor, as its page says it lies.
struct dl_tensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

static void views_come_from_dlpack(void) {
  int64_t shape[2] = {3, 4}, strides[2] = {1, 3};
  float data[12];
  struct dl_tensor tensor = {NULL, 1, 0, 2, 2, 32, 1, NULL, NULL, 8}, back;
  sluice_view view;
  int32_t dtype;
  tensor.data = data;
  tensor.shape = shape;
  tensor.strides = strides;
  CHECK_OK(sluice_view_from_dltensor(&tensor, &view));
  CHECK(view.data == data && view.shape == shape && view.strides == strides);
  CHECK(view.ndim == 2 && view.dtype == SLUICE_F32 && view.device == 1 && view.byte_offset == 8);
  for (dtype = SLUICE_F64; dtype <= SLUICE_C128; ++dtype) {
    view.dtype = dtype;
    memset(&back, 0, sizeof back);
    CHECK_OK(sluice_view_to_dltensor(&view, &back));
    CHECK(back.bits * back.lanes == 8 * sluice_dtype_bytes(dtype));
    CHECK(back.data == data && back.shape == shape && back.strides == strides);
    CHECK(back.byte_offset == 8 && back.device_type == 1 && back.ndim == 2);
    view.dtype = 0;
    CHECK_OK(sluice_view_from_dltensor(&back, &view));
    CHECK(view.dtype == dtype);
  }
  tensor.bits = 33;
  CHECK_FAILS(sluice_view_from_dltensor(&tensor, &view), SLUICE_INVALID_ARGUMENT, "33 bits");
  CHECK(view.data == NULL && view.ndim == 0);
  CHECK_FAILS(sluice_view_to_dltensor(&view, &back), SLUICE_INVALID_ARGUMENT, "is not set");
}

static void shapes_are_local(void) {
  const int64_t mesh[2] = {2, 2}, shape[2] = {10, 6}, whole[2] = {20, 6}, offset[2] = {5, 0};
  const int32_t order[2] = {1, 0}, ranks[4] = {7, 6, 5, 4};
  int64_t local[2];
  sluice_layout layout = SLUICE_LAYOUT_INIT;
  layout.mesh = mesh;
  layout.mesh_ndim = 2;
  layout.placements = "S(0),S(1)";
  CHECK_OK(sluice_local_shape(&layout, 2, shape, 3, local));
  CHECK(local[0] == 5 && local[1] == 3);
  CHECK_OK(sluice_local_shape(&layout, 2, shape, 4, local));
  CHECK(local[0] == 0 && local[1] == 0);
  layout.ranks = ranks;
  CHECK_OK(sluice_local_shape(&layout, 2, shape, 4, local));
  CHECK(local[0] == 5 && local[1] == 3);
  // 10 rows over both dimensions are 5 + 5, and 3 + 2 of each. Which dimension is visited first
  // says which ranks have how many.
  layout.ranks = NULL;
  layout.placements = "S(0),S(0)";
  CHECK_OK(sluice_local_shape(&layout, 2, shape, 1, local));
  CHECK(local[0] == 2);
  layout.order = order;
  CHECK_OK(sluice_local_shape(&layout, 2, shape, 1, local));
  CHECK(local[0] == 3);
  layout.order = NULL;
  layout.placements = "R,R";
  local[0] = 7;
  CHECK_OK(sluice_local_shape(&layout, 0, NULL, 1, local));
  CHECK(local[0] == 7);  // a scalar's has no numbers
  layout.placements = "S(0),R";
  layout.whole = whole;
  CHECK_FAILS(sluice_local_shape(&layout, 2, shape, 0, local), SLUICE_INVALID_ARGUMENT,
              ".offset is NULL");
  layout.offset = offset;
  CHECK_OK(sluice_local_shape(&layout, 2, shape, 3, local));
  CHECK(local[0] == 5 && local[1] == 6);  // rows 10 to 15 of the whole
  layout.placements = "S(0)";
  CHECK_FAILS(sluice_local_shape(&layout, 2, shape, 0, local), SLUICE_INVALID_ARGUMENT, "");
  layout.placements = NULL;
  CHECK_FAILS(sluice_local_shape(&layout, 2, shape, 0, local), SLUICE_INVALID_ARGUMENT,
              "placements is NULL");
  layout.placements = "S(0),R";
  layout.mesh_ndim = 65;
  CHECK_FAILS(sluice_local_shape(&layout, 2, shape, 0, local), SLUICE_INVALID_ARGUMENT,
              "mesh_ndim is 65");
  layout.mesh_ndim = 2;
  CHECK_FAILS(sluice_local_shape(&layout, 9, shape, 0, local), SLUICE_INVALID_ARGUMENT,
              "9 dimensions");
}

// Boxes stand in place of everything else, and nothing else is passed over.
static void boxes_stand_alone(void) {
  const int64_t numbers[2] = {1, 1}, shape[2] = {4, 4};
  const int32_t ranks[2] = {0, 1};
  const sluice_box box = {numbers, numbers, 2, 0};
  sluice_layout plain = SLUICE_LAYOUT_INIT, layout;
  int64_t local[2];
  plain.boxes = &box;
  plain.num_boxes = 1;
  layout = plain;
  CHECK_FAILS(sluice_local_shape(&layout, 2, shape, 0, local), SLUICE_INVALID_ARGUMENT, "boxes");
  layout.mesh = numbers;
  CHECK_FAILS(sluice_local_shape(&layout, 2, shape, 0, local), SLUICE_INVALID_ARGUMENT,
              "both a mesh and boxes");
  layout = plain;
  layout.ranks = ranks;
  CHECK_FAILS(sluice_local_shape(&layout, 2, shape, 0, local), SLUICE_INVALID_ARGUMENT,
              "and also ranks");
  layout = plain;
  layout.order = ranks;
  CHECK_FAILS(sluice_local_shape(&layout, 2, shape, 0, local), SLUICE_INVALID_ARGUMENT, "an order");
  layout = plain;
  layout.whole = layout.offset = numbers;
  CHECK_FAILS(sluice_local_shape(&layout, 2, shape, 0, local), SLUICE_INVALID_ARGUMENT, "a slice");
}

// A caller with a larger struct, one with a smaller one, and ones whose size is none.
static void structs_have_sizes(void) {
  struct {
    sluice_listen_options known;
    int64_t unknown;
  } newer;
  sluice_store_server* server = NULL;
  sluice_connect_store_options connect = SLUICE_CONNECT_STORE_OPTIONS_INIT;
  sluice_store* store = NULL;
  sluice_local* local = NULL;
  sluice_session* session = NULL;
  sluice_session_options options = SLUICE_SESSION_OPTIONS_INIT;
  memset(&newer, 0, sizeof newer);
  newer.known.size = sizeof newer;
  CHECK_OK(sluice_store_listen(&newer.known, &server));
  // As of a header in which `connect_timeout_s` and `timeout_s` were not there yet.
  connect.size = offsetof(sluice_connect_store_options, timeout_s);
  connect.timeout_s = connect.connect_timeout_s = NAN;
  CHECK_OK(sluice_store_connect(sluice_store_server_address(server), &connect, &store));
  sluice_store_destroy(store);
  connect.size = sizeof connect;
  CHECK_FAILS(sluice_store_connect(sluice_store_server_address(server), &connect, &store),
              SLUICE_INVALID_ARGUMENT, "timeout_s is no number");
  CHECK(store == NULL);
  sluice_store_server_destroy(server);
  newer.unknown = 1;
  CHECK_FAILS(sluice_store_listen(&newer.known, &server), SLUICE_UNIMPLEMENTED, "newer sluice.h");
  newer.unknown = 0;
  newer.known.reserved = 1;
  CHECK_FAILS(sluice_store_listen(&newer.known, &server), SLUICE_UNIMPLEMENTED, "reserved");
  newer.known.reserved = 0;
  newer.known.size = 0;
  CHECK_FAILS(sluice_store_listen(&newer.known, &server), SLUICE_INVALID_ARGUMENT, "size is 0");
  newer.known.size = sizeof newer - 1;
  CHECK_FAILS(sluice_store_listen(&newer.known, &server), SLUICE_INVALID_ARGUMENT, "size is 39");
  newer.known.size = (size_t)-8;
  CHECK_FAILS(sluice_store_listen(&newer.known, &server), SLUICE_INVALID_ARGUMENT, "size is");
  CHECK(server == NULL);
  CHECK_FAILS(sluice_local_create(0, &local), SLUICE_INVALID_ARGUMENT, "");
  CHECK_OK(sluice_local_create(2, &local));
  CHECK_FAILS(sluice_local_session(local, 2, &options, &session), SLUICE_INVALID_ARGUMENT,
              "rank 2 of 2");
  sluice_local_destroy(local);
}

static void* last_error_of_thread(void* unused) {
  CHECK(strcmp(sluice_last_error(), "") == 0);
  CHECK(sluice_store_in_memory(NULL) == SLUICE_INVALID_ARGUMENT);
  CHECK(strcmp(sluice_last_error(), "sluice_store_in_memory: store is NULL") == 0);
  return unused;
}

static void texts_are_of_one_thread(void) {
  pthread_t thread;
  sluice_store* store = NULL;
  CHECK(sluice_poll(NULL) == SLUICE_INVALID_ARGUMENT);
  CHECK(strcmp(sluice_last_error(), "sluice_poll: session is NULL") == 0);
  CHECK(pthread_create(&thread, NULL, last_error_of_thread, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_OK(sluice_store_in_memory(&store));
  sluice_store_destroy(store);
  CHECK(strcmp(sluice_last_error(), "sluice_poll: session is NULL") == 0);
}

static pthread_key_t at_end;

// As a thread ends, and as the process does, calls fail as before.
static void fail_late(void) {
  CHECK_FAILS(sluice_local_create(-1, &(sluice_local*){NULL}), SLUICE_INVALID_ARGUMENT, "-1 ranks");
}
static void fail_at_end(void* unused) {
  (void)unused;
  fail_late();
}
static void* fail_twice(void* given) {
  CHECK(sluice_poll(NULL) < 0);
  CHECK(pthread_setspecific(at_end, given) == 0);
  return NULL;
}

static void calls_may_fail_late(void) {
  int any = 0;
  pthread_t thread;
  CHECK(pthread_key_create(&at_end, fail_at_end) == 0);
  CHECK(pthread_create(&thread, NULL, fail_twice, &any) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(atexit(fail_late) == 0);
}

static void* use_from_another_thread(void* given) {
  sluice_session* const session = (sluice_session*)given;
  size_t bytes = 0;
  CHECK(sluice_poll(session) == SLUICE_FAILED_PRECONDITION);
  CHECK(strstr(sluice_last_error(), "another one calls") != NULL);
  CHECK(sluice_session_close(session) == SLUICE_FAILED_PRECONDITION);
  CHECK(sluice_session_destroy(session) == SLUICE_FAILED_PRECONDITION);
  CHECK(sluice_wait(session, 1, 0) == SLUICE_FAILED_PRECONDITION);
  CHECK_OK(sluice_session_report(session, NULL, &bytes));
  CHECK(bytes > 1);
  return NULL;
}

static void other_threads_are_refused(sluice_session* session, int32_t rank) {
  pthread_t thread;
  CHECK(sluice_session_count(session) == 2 && sluice_session_rank(session) == rank);
  CHECK(pthread_create(&thread, NULL, use_from_another_thread, session) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_OK(sluice_poll(session));
  CHECK_OK(sluice_session_reset_metrics(session));
}

static void* wait_for_world(void* world) {
  sluice_status status;
  do {  // the other thread may be in a call just now
    status = sluice_world_wait((sluice_world*)world, 60);
  } while (status == SLUICE_FAILED_PRECONDITION);
  CHECK_OK(status);
  return NULL;
}

// A call beside one that waits is refused.
static void worlds_take_one_call(void) {
  sluice_world_options options = SLUICE_WORLD_OPTIONS_INIT;
  sluice_world* worlds[2] = {NULL, NULL};
  sluice_store* store = NULL;
  const char* missing = NULL;
  pthread_t thread;
  int64_t count = 0;
  CHECK_OK(sluice_store_in_memory(&store));
  options.own_store = store;
  options.count = 2;
  CHECK_OK(sluice_world_join(&options, &worlds[0]));
  CHECK_OK(sluice_world_missing(worlds[0], &missing));
  CHECK(strstr(missing, "1") != NULL);
  CHECK(pthread_create(&thread, NULL, wait_for_world, worlds[0]) == 0);
  while (sluice_world_members(worlds[0], SLUICE_MEMBERS_NOW, &count) == SLUICE_OK) usleep(1000);
  CHECK_FAILS(sluice_world_missing(worlds[0], &missing), SLUICE_FAILED_PRECONDITION,
              "another thread is in a call of the world");
  CHECK(missing == NULL);
  options.rank = 1;
  CHECK_OK(sluice_world_join(&options, &worlds[1]));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_OK(sluice_world_missing(worlds[0], &missing));
  CHECK(strcmp(missing, "") == 0);
  sluice_world_destroy(worlds[1]);
  sluice_world_destroy(worlds[0]);
  sluice_store_destroy(store);
}

// Options that cannot be read do not make the wait for others one without end.
static void bad_options_keep_their_times(void) {
  sluice_session_options options = SLUICE_SESSION_OPTIONS_INIT;
  sluice_session* session = NULL;
  sluice_store* store = NULL;
  CHECK_OK(sluice_store_in_memory(&store));
  options.timeout_s = NAN;
  options.patience_s = 0.1;
  CHECK_FAILS(sluice_session_create(store, "alone", 0, 2, &options, &session),
              SLUICE_INVALID_ARGUMENT, "timeout_s is no number");
  options.timeout_s = 0.1;
  options.patience_s = NAN;
  CHECK_FAILS(sluice_session_create(store, "alone too", 0, 2, &options, &session),
              SLUICE_INVALID_ARGUMENT, "patience_s is no number");
  sluice_store_destroy(store);
}

static void* bad_options(void* given) {
  sluice_local* const local = (sluice_local*)given;
  sluice_session_options options = SLUICE_SESSION_OPTIONS_INIT;
  sluice_session* session = NULL;
  options.timeout_s = NAN;
  CHECK_FAILS(sluice_local_session(local, 1, &options, &session), SLUICE_INVALID_ARGUMENT,
              "timeout_s is no number");
  return NULL;
}

// A rank whose options cannot be read says so to the others, which do not wait for it.
static void bad_options_are_heard_of(void) {
  sluice_local* local = NULL;
  sluice_session* session = NULL;
  pthread_t thread;
  CHECK_OK(sluice_local_create(2, &local));
  CHECK(pthread_create(&thread, NULL, bad_options, local) == 0);
  CHECK(sluice_local_session(local, 0, NULL, &session) < 0);
  CHECK(session == NULL);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_FAILS(sluice_local_session(local, 0, NULL, &session), SLUICE_FAILED_PRECONDITION,
              "has had its session");
  sluice_local_destroy(local);
}

// What every store does.
static void use_store(sluice_store* store) {
  char value[8] = "";
  size_t bytes = sizeof value;
  int64_t sum = -1;
  CHECK_OK(sluice_store_set(store, "key", "value", 5));
  CHECK_OK(sluice_store_get(store, "key", 0, value, &bytes));
  CHECK(bytes == 5 && memcmp(value, "value", 5) == 0);
  bytes = 4;
  CHECK_FAILS(sluice_store_get(store, "key", 0, value, &bytes), SLUICE_OUT_OF_RANGE, "room for 4");
  CHECK(bytes == 5);
  bytes = 0;
  CHECK_OK(sluice_store_get(store, "key", -1, NULL, &bytes));
  CHECK(bytes == 5);
  CHECK_OK(sluice_store_set(store, "key", NULL, 0));
  CHECK(sluice_store_get(store, "key", 0.01, value, &bytes) == SLUICE_DEADLINE_EXCEEDED);
  CHECK_OK(sluice_store_add(store, "count", 41, &sum));
  CHECK_OK(sluice_store_add(store, "count", 1, &sum));
  CHECK(sum == 42);
  REFUSES(sluice_store_set(store, NULL, "value", 5));
  REFUSES(sluice_store_set(store, "key", NULL, 5));
  REFUSES(sluice_store_get(store, "key", 0, value, NULL));
  REFUSES(sluice_store_add(store, "count", 1, NULL));
  CHECK(sluice_store_set(store, "", "value", 5) == SLUICE_INVALID_ARGUMENT);
}

static void stores_keep_values(void) {
  sluice_listen_options listen = SLUICE_LISTEN_OPTIONS_INIT;
  sluice_connect_store_options connect = SLUICE_CONNECT_STORE_OPTIONS_INIT;
  sluice_store_server* server = NULL;
  sluice_store* store = NULL;
  CHECK_OK(sluice_store_in_memory(&store));
  use_store(store);
  sluice_store_destroy(store);
  listen.token = "sesame";
  CHECK_OK(sluice_store_listen(&listen, &server));
  CHECK(strncmp(sluice_store_server_address(server), "tcp://127.0.0.1:", 16) == 0);
  connect.token = "sesame";
  CHECK_OK(sluice_store_connect(sluice_store_server_address(server), &connect, &store));
  use_store(store);
  sluice_store_destroy(store);
  connect.token = "simsim";
  CHECK(sluice_store_connect(sluice_store_server_address(server), &connect, &store) ==
        SLUICE_PERMISSION_DENIED);
  CHECK(store == NULL);
  sluice_store_server_destroy(server);
}

static sluice_status burns(void* self, const void* key, size_t key_bytes, int64_t delta,
                           int64_t* sum) {
  (void)key, (void)key_bytes, (void)delta, (void)sum;
  if (*(int*)self == SLUICE_UNAVAILABLE) sluice_set_error("the table burns");
  return *(int*)self;
}

static sluice_status lists_another(void* self, const void* prefix, size_t prefix_bytes,
                                   sluice_reply* entries) {
  (void)self, (void)prefix, (void)prefix_bytes;
  return sluice_reply_entry(entries, "another", 7, "value", 5);
}

// What a store may not answer is an error that names it.
static void own_stores_list_by_prefix(void) {
  static struct table table;
  sluice_session_options options = SLUICE_SESSION_OPTIONS_INIT;
  sluice_session* session = NULL;
  sluice_store* store = NULL;
  sluice_store_calls calls;
  table_init(&table);
  calls = table_calls(&table);
  calls.list = lists_another;
  options.patience_s = 10;
  CHECK_OK(sluice_store_create(&calls, &store));
  CHECK_FAILS(sluice_session_create(store, "one", 0, 1, &options, &session), SLUICE_INTERNAL,
              "it replied \"another\"");
  sluice_store_destroy(store);
  table_end(&table);
}

static void own_stores_keep_values(void) {
  static struct table table;
  sluice_store_calls calls;
  sluice_store* store = NULL;
  int64_t sum = 0;
  int status = SLUICE_UNAVAILABLE;
  table_init(&table);
  calls = table_calls(&table);
  CHECK_OK(sluice_store_create(&calls, &store));
  use_store(store);
  CHECK(table.destroyed == 0);
  sluice_store_destroy(store);
  CHECK(table.destroyed == 1);

  calls.destroy = NULL;
  calls.add = burns;
  calls.self = &status;
  CHECK_OK(sluice_store_create(&calls, &store));
  CHECK_FAILS(sluice_store_add(store, "key", 1, &sum), SLUICE_UNAVAILABLE,
              "the caller's store, add: the table burns");
  status = SLUICE_ABORTED;  // without a text, and the earlier one is over
  CHECK_FAILS(sluice_store_add(store, "key", 1, &sum), SLUICE_ABORTED, "add: ABORTED");
  status = 77;
  CHECK_FAILS(sluice_store_add(store, "key", 1, &sum), SLUICE_INTERNAL, "returned 77");
  sluice_store_destroy(store);

  calls.list = NULL;
  CHECK_FAILS(sluice_store_create(&calls, &store), SLUICE_INVALID_ARGUMENT, "list is NULL");
  table_end(&table);
}

struct member {
  struct table* table;
  int32_t rank;
};

// A session that meets at the caller's own store.
static void* meet_at_table(void* given) {
  const struct member* const self = (const struct member*)given;
  const sluice_store_calls calls = table_calls(self->table);
  sluice_session_options options = SLUICE_SESSION_OPTIONS_INIT;
  sluice_session* session = NULL;
  sluice_store* store = NULL;
  options.patience_s = 60;
  CHECK_OK(sluice_store_create(&calls, &store));
  CHECK_OK(sluice_session_create(store, "pair", self->rank, 2, &options, &session));
  sluice_store_destroy(store);  // the session keeps it
  CHECK(sluice_session_rank(session) == self->rank && sluice_session_count(session) == 2);
  CHECK_OK(sluice_session_close(session));
  CHECK_OK(sluice_session_destroy(session));
  return NULL;
}

static void sessions_meet_at_own_stores(void) {
  static struct table table;
  struct member members[2];
  pthread_t threads[2];
  int32_t rank;
  table_init(&table);
  for (rank = 0; rank < 2; ++rank) {
    members[rank].table = &table;
    members[rank].rank = rank;
    CHECK(pthread_create(&threads[rank], NULL, meet_at_table, &members[rank]) == 0);
  }
  for (rank = 0; rank < 2; ++rank) CHECK(pthread_join(threads[rank], NULL) == 0);
  CHECK(table.calls > 4);
  table_end(&table);
}

int calls_test(void) {
  CHECK(strcmp(sluice_last_error(), "") == 0);
  nothing_ends_well();
  null_is_refused();
  failed_calls_give_nothing();
  statuses_have_names();
  dtypes_have_names();
  views_come_from_dlpack();
  shapes_are_local();
  boxes_stand_alone();
  structs_have_sizes();
  texts_are_of_one_thread();
  calls_may_fail_late();
  on_ranks(2, NULL, other_threads_are_refused);
  bad_options_are_heard_of();
  bad_options_keep_their_times();
  worlds_take_one_call();
  stores_keep_values();
  own_stores_keep_values();
  own_stores_list_by_prefix();
  sessions_meet_at_own_stores();
  return 0;
}
