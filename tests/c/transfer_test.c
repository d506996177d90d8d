// Transfers through the C API between threads: every element, late memory, events, and bad input.
#include "c/check.h"
#include "c/ranks.h"
#include "c/tests.h"
#include "c/weight.h"
#include "sluice/sluice.h"

static const int64_t kMesh[1] = {2};

static void rows_to_columns(sluice_session* session, int32_t rank) {
  sluice_transfer* transfer = NULL;
  sluice_metric metrics[32];
  int64_t count = 32;
  struct parts parts;
  sluice_run run = 0;
  size_t bytes = 0;
  char* text;
  (void)rank;
  CHECK_OK(compile_weight(session, &transfer));
  CHECK(sluice_transfer_count(transfer) == 1);
  CHECK(strcmp(sluice_transfer_name(transfer, 0), "weight") == 0);
  CHECK(sluice_transfer_name(transfer, 1) == NULL);
  fill(&parts, session);
  CHECK_OK(sluice_start(transfer, &parts.src_views, &parts.dst_views, NULL, &run));
  CHECK(run == 1);
  CHECK_OK(sluice_wait(session, run, -1));
  CHECK(sluice_is_done(session, run) == 1);
  check(&parts, session);
  CHECK_FAILS(sluice_wait(session, 2, 0), SLUICE_NOT_FOUND, "no run 2");
  CHECK_OK(sluice_transfer_metrics(transfer, metrics, &count));
  CHECK(metric(metrics, count, "received_bytes") + metric(metrics, count, "local_bytes") > 0);
  CHECK(metric(metrics, count, "sent_bytes") == ROWS / 2 * COLUMNS / 2 * 4);
  count = 1;
  CHECK_OK(sluice_session_metrics(session, metrics, &count));
  CHECK(count > 1);  // of which there was room for one
  CHECK_OK(sluice_session_report(session, NULL, &bytes));
  text = (char*)malloc(bytes);
  CHECK_OK(sluice_session_report(session, text, &bytes));
  CHECK(strlen(text) + 1 == bytes && strstr(text, "rank") != NULL);
  bytes = 1;
  CHECK_FAILS(sluice_session_report(session, text, &bytes), SLUICE_OUT_OF_RANGE, "room for 1");
  free(text);
  bytes = 0;
  CHECK_FAILS(sluice_session_trace(session, NULL, &bytes), SLUICE_FAILED_PRECONDITION,
              "trace_events");
  CHECK_OK(sluice_transfer_drop(transfer));
}

static void late_memory(sluice_session* session, int32_t rank) {
  const sluice_views none = {NULL, 0};
  sluice_start_options options = SLUICE_START_OPTIONS_INIT;
  sluice_event event = SLUICE_EVENT_INIT;
  sluice_transfer* transfer = NULL;
  struct parts parts;
  sluice_run run = 0;
  int supplied = 0, done = 0;
  (void)rank;
  CHECK_OK(compile_weight(session, &transfer));
  fill(&parts, session);
  options.late = 1;
  CHECK_OK(sluice_start(transfer, &parts.src_views, &none, &options, &run));
  while (!done) {
    const sluice_status status = sluice_next_event(session, &event);
    if (status == SLUICE_PENDING) {
      CHECK_OK(sluice_poll(session));
      continue;
    }
    CHECK_OK(status);
    CHECK(event.size == sizeof event && event.run == run && event.tensor == 0);
    if (event.kind == SLUICE_NEEDS_MEMORY) {
      CHECK(!supplied);
      CHECK_FAILS(sluice_supply(session, run, 7, &parts.dst_views), SLUICE_INVALID_ARGUMENT,
                  "no tensor 7");
      CHECK_FAILS(sluice_supply(session, run, 0, NULL), SLUICE_INVALID_ARGUMENT, "memory is NULL");
      CHECK_OK(sluice_supply(session, run, 0, &parts.dst_views));
      supplied = 1;
    } else {
      CHECK(event.kind == SLUICE_TENSOR_DONE && supplied);
      done = 1;
    }
  }
  CHECK_OK(sluice_wait(session, run, -1));
  check(&parts, session);

  // A run that waits for memory is not over, and can be given up.
  CHECK_OK(sluice_start(transfer, &parts.src_views, &none, &options, &run));
  CHECK(sluice_wait(session, run, 0) == SLUICE_PENDING);
  CHECK_OK(sluice_cancel(session, run));
  CHECK_FAILS(sluice_wait(session, run, -1), SLUICE_CANCELLED, "");
  event.kind = -1;
  while (event.kind != SLUICE_RUN_FAILED) {
    const sluice_status status = sluice_next_event(session, &event);
    if (status == SLUICE_PENDING) CHECK_OK(sluice_poll(session));
  }
  CHECK(event.status == SLUICE_CANCELLED && event.tensor == -1 && strlen(event.message) > 0);
}

// Rank 0 has rows, and each rank gives its own boxes as targets: halves of the columns, in two
// boxes.
static void own_halves(sluice_session* session, int32_t rank) {
  static const int32_t kFirst[1] = {0};
  static const int64_t kOne[1] = {1};
  const sluice_rename rename = {"columns", "rows"};
  const int64_t upper[2] = {0, rank * (COLUMNS / 2)}, lower[2] = {ROWS / 2, upper[1]};
  const int64_t box_shape[2] = {ROWS / 2, COLUMNS / 2};
  sluice_box boxes[2] = {{NULL, NULL, 2, 0}, {NULL, NULL, 2, 0}};
  sluice_layout whole = layout_of(kMesh, "R"), own_boxes = SLUICE_LAYOUT_INIT;
  sluice_half source = SLUICE_HALF_INIT, target = SLUICE_HALF_INIT;
  sluice_own own = SLUICE_OWN_INIT;
  sluice_start_options options = SLUICE_START_OPTIONS_INIT;
  sluice_transfer* transfer = NULL;
  sluice_view views[2], source_view;
  float src[ROWS * COLUMNS], dst[2][ROWS / 2 * COLUMNS / 2];
  sluice_run run = 0;
  int64_t i;
  for (i = 0; i < ROWS * COLUMNS; ++i) src[i] = value_at(i / COLUMNS, i % COLUMNS);
  memset(dst, 0, sizeof dst);
  whole.ranks = kFirst;
  whole.mesh = kOne;
  source.name = "rows";
  source.shape = target.shape = kShape;
  source.ndim = target.ndim = 2;
  source.dtype = target.dtype = SLUICE_F32;
  source.layout = &whole;
  source_view = view_of(src, kShape);
  source.memory.views = &source_view;
  source.memory.count = 1;
  boxes[0].offset = upper;
  boxes[1].offset = lower;
  boxes[0].shape = boxes[1].shape = box_shape;
  boxes[0].rank = boxes[1].rank = rank;
  own_boxes.boxes = boxes;
  own_boxes.num_boxes = 2;
  target.name = "columns";
  target.layout = &own_boxes;
  views[0] = view_of(dst[0], box_shape);
  views[1] = view_of(dst[1], box_shape);
  target.memory.views = views;
  target.memory.count = 2;
  if (rank == 0) {
    own.sources = &source;
    own.num_sources = 1;
    own.renames = &rename;
    own.num_renames = 1;
  }
  own.targets = &target;
  own.num_targets = 1;

  // One rank's mistake is an error on both, and the session goes on.
  target.dtype = rank == 1 ? 99 : SLUICE_F32;
  CHECK_FAILS(sluice_connect(session, &own, &transfer), SLUICE_INVALID_ARGUMENT,
              "targets[0].dtype is 99");
  CHECK(rank == 1 || strcmp(sluice_last_error_field("ranks"), "1") == 0);  // whose mistake it is
  CHECK(sluice_last_error_field("tensor") == NULL && sluice_last_error_field("epoch") == NULL);
  CHECK(sluice_last_error_field("else") == NULL && sluice_last_error_field(NULL) == NULL);
  CHECK(transfer == NULL);
  target.dtype = SLUICE_F32;

  CHECK_OK(sluice_connect(session, &own, &transfer));
  CHECK(strcmp(sluice_transfer_name(transfer, 0), "columns") == 0);
  CHECK(sluice_transfer_version(transfer) == 0);
  options.version = 7;
  CHECK_OK(sluice_start(transfer, NULL, NULL, &options, &run));
  CHECK_OK(sluice_wait(session, run, -1));
  CHECK(sluice_transfer_version(transfer) == 7);
  CHECK_FAILS(sluice_start(transfer, NULL, NULL, &options, &run), SLUICE_INVALID_ARGUMENT,
              "version 7");
  for (i = 0; i < ROWS / 2 * COLUMNS / 2; ++i) {
    const int64_t row = i / (COLUMNS / 2), column = upper[1] + i % (COLUMNS / 2);
    CHECK(dst[0][i] == value_at(row, column));
    CHECK(dst[1][i] == value_at(row + ROWS / 2, column));
  }
  CHECK_OK(sluice_rebind(transfer, NULL, 0, &target, 1));
  target.name = "nothing";
  CHECK_FAILS(sluice_rebind(transfer, NULL, 0, &target, 1), SLUICE_NOT_FOUND, "nothing");
  CHECK(strcmp(sluice_last_error_field("tensor"), "nothing") == 0);
  CHECK_OK(sluice_transfer_drop(transfer));
}

// What is wrong on one rank is an error on both.
static void bad_input(sluice_session* session, int32_t rank) {
  const sluice_layout rows = layout_of(kMesh, "S(0)"), columns = layout_of(kMesh, "S(1)");
  sluice_layout garbled = layout_of(kMesh, "X(0)");
  sluice_tensor tensor = tensor_of(&rows, &columns);
  sluice_transfer* transfer = NULL;
  sluice_memory* memory = NULL;
  struct parts parts;
  sluice_run run = 0;
  if (rank == 1) tensor.dst = &garbled;
  CHECK_FAILS(sluice_compile(session, &tensor, 1, 0, &transfer), SLUICE_INVALID_ARGUMENT, "X(0)");
  tensor.dst = rank == 1 ? NULL : &columns;
  CHECK_FAILS(sluice_compile(session, &tensor, 1, 0, &transfer), SLUICE_INVALID_ARGUMENT,
              "tensors[0].dst is NULL");
  tensor.dst = &columns;
  CHECK(sluice_compile(session, &tensor, 1, 0, rank == 1 ? NULL : &transfer) ==
        SLUICE_INVALID_ARGUMENT);
  CHECK(transfer == NULL);
  CHECK_FAILS(sluice_compile(session, &tensor, 1, 9, &transfer), SLUICE_INVALID_ARGUMENT,
              "priority");
  CHECK_FAILS(sluice_compile(session, NULL, 1, 0, &transfer), SLUICE_INVALID_ARGUMENT, "is NULL");
  CHECK_FAILS(sluice_compile(session, &tensor, -1, 0, &transfer), SLUICE_INVALID_ARGUMENT, "-1");
  CHECK(sluice_allocate(session, 64, rank == 0 ? NULL : &memory) == SLUICE_INVALID_ARGUMENT);

  CHECK_OK(sluice_compile(session, &tensor, 1, 0, &transfer));
  fill(&parts, session);
  if (rank == 1) parts.src_view.ndim = -1;
  if (rank == 1) {
    CHECK_FAILS(sluice_start(transfer, &parts.src_views, &parts.dst_views, NULL, &run),
                SLUICE_INVALID_ARGUMENT, "src[0].views[0]");
    CHECK(run == 0);
    while (sluice_is_done(session, 1) == 0) CHECK_OK(sluice_poll(session));
  } else {
    CHECK_OK(sluice_start(transfer, &parts.src_views, &parts.dst_views, NULL, &run));
    CHECK(sluice_wait(session, run, -1) == SLUICE_INVALID_ARGUMENT);
  }
  fill(&parts, session);
  CHECK_OK(sluice_start(transfer, &parts.src_views, &parts.dst_views, NULL, &run));
  CHECK_OK(sluice_wait(session, run, -1));
  check(&parts, session);

  CHECK_OK(sluice_allocate(session, rank == 0 ? 8192 : 0, &memory));
  CHECK((sluice_memory_data(memory) != NULL) == (rank == 0));
  if (rank == 0) memset(sluice_memory_data(memory), 1, 8192);
  sluice_memory_destroy(memory);
}

// More runs than are known by number.
static void many_runs(sluice_session* session, int32_t rank) {
  sluice_transfer* transfer = NULL;
  struct parts parts;
  sluice_run run = 0;
  int i;
  (void)rank;
  CHECK_OK(compile_weight(session, &transfer));
  fill(&parts, session);
  for (i = 0; i < 4100; ++i) {
    CHECK_OK(sluice_start(transfer, &parts.src_views, &parts.dst_views, NULL, &run));
    CHECK_OK(sluice_wait(session, run, -1));
  }
  CHECK(run == 4100);
  CHECK_OK(sluice_wait(session, 5, 0));
  CHECK_FAILS(sluice_wait(session, 4, 0), SLUICE_NOT_FOUND, "newest 4096");
  CHECK(sluice_is_done(session, 4) == 1);
}

static void traced(sluice_session* session, int32_t rank) {
  size_t bytes = 0;
  char* text;
  (void)rank;
  CHECK_OK(sluice_session_trace(session, NULL, &bytes));
  text = (char*)malloc(bytes);
  CHECK_OK(sluice_session_trace(session, text, &bytes));
  CHECK(strstr(text, "traceEvents") != NULL);
  free(text);
}

int transfer_test(void) {
  sluice_session_options options = SLUICE_SESSION_OPTIONS_INIT;
  on_ranks(2, NULL, rows_to_columns);
  on_ranks(2, NULL, late_memory);
  on_ranks(2, NULL, own_halves);
  on_ranks(2, NULL, bad_input);
  on_ranks(2, NULL, many_runs);
  options.progress_thread = 1;
  options.no_direct = 1;
  options.no_coalesce = 1;
  options.bucket_bytes = 16;
  on_ranks(2, &options, rows_to_columns);
  options.trace_events = 1000;
  on_ranks(2, &options, traced);
  return 0;
}
