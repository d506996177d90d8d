// Checkpoints and streams through the C API, between threads: every byte of what comes.
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "c/check.h"
#include "c/ranks.h"
#include "c/tests.h"
#include "sluice/sluice.h"

#define ROWS 8
#define COLUMNS 6
#define ITEMS 12
#define ITEM_BYTES 64

static char directory[] = "/tmp/sluice_c_test_XXXXXX";

static const int64_t kShape[2] = {ROWS, COLUMNS};
static const int64_t kMesh[1] = {2};

static sluice_checkpoint_tensor weight(const sluice_layout* layout, const sluice_view* views,
                                       int64_t count) {
  sluice_checkpoint_tensor tensor = SLUICE_CHECKPOINT_TENSOR_INIT;
  tensor.name = "weight";
  tensor.shape = kShape;
  tensor.ndim = 2;
  tensor.dtype = SLUICE_F32;
  tensor.layout = layout;
  tensor.memory.views = views;
  tensor.memory.count = count;
  return tensor;
}

// The same elements as two arrays: the upper rows, and the lower ones. They end the saved file.
static void load_by_catalog(sluice_session* session, const char* uri, const sluice_layout* columns,
                            int32_t rank) {
  static const int64_t kHalf[2] = {ROWS / 2, COLUMNS}, kLower[2] = {ROWS / 2, 0};
  const int64_t bytes = ROWS * COLUMNS, shape[2] = {ROWS, COLUMNS / 2};
  sluice_checkpoint_entry catalog[2] = {SLUICE_CHECKPOINT_ENTRY_INIT, SLUICE_CHECKPOINT_ENTRY_INIT};
  sluice_checkpoint_options options = SLUICE_CHECKPOINT_OPTIONS_INIT;
  sluice_view view = {NULL, 0, NULL, NULL, 2, SLUICE_F32, 1, 0};
  sluice_checkpoint_tensor tensor = weight(columns, &view, 1);
  float loaded[ROWS * COLUMNS / 2] = {0};
  struct stat file;
  char path[96];
  int64_t i;
  snprintf(path, sizeof path, "%s/model.safetensors", directory);
  CHECK(stat(path, &file) == 0);
  for (i = 0; i < 2; ++i) {
    catalog[i].tensor = "weight";
    catalog[i].file = "model.safetensors";
    catalog[i].shape = kHalf;
    catalog[i].ndim = 2;
    catalog[i].dtype = SLUICE_BF16;
    catalog[i].bytes = bytes;
    catalog[i].begin = (int64_t)file.st_size - (2 - i) * bytes;
  }
  catalog[1].offset = kLower;
  view.data = loaded;
  view.shape = shape;
  options.catalog = catalog;
  options.num_entries = 2;
  CHECK_OK(sluice_checkpoint_load(session, uri, &tensor, 1, &options, NULL, NULL));
  for (i = 0; i < ROWS * COLUMNS / 2; ++i) {
    const int64_t row = i / (COLUMNS / 2), column = rank * (COLUMNS / 2) + i % (COLUMNS / 2);
    CHECK(loaded[i] == (float)(row * COLUMNS + column));
  }
  catalog[1].ndim = 9;
  CHECK_FAILS(sluice_checkpoint_load(session, uri, &tensor, 1, &options, NULL, NULL),
              SLUICE_INVALID_ARGUMENT, "catalog[1].ndim is 9");
  options.num_entries = -1;
  CHECK_FAILS(sluice_checkpoint_load(session, uri, &tensor, 1, &options, NULL, NULL),
              SLUICE_INVALID_ARGUMENT, "catalog");
}

// Saved by rows, in which a rank's rows are every second float of its memory; loaded by columns,
// and into boxes of which one rank has two.
static void save_and_load(sluice_session* session, int32_t rank) {
  static const int64_t kRowStrides[2] = {2 * COLUMNS, 2};
  static const int64_t kOffsets[3][2] = {{0, 0}, {0, 4}, {4, 4}};
  static const int64_t kBoxShapes[3][2] = {{8, 4}, {4, 2}, {4, 2}};
  const int64_t rows_shape[2] = {ROWS / 2, COLUMNS}, columns_shape[2] = {ROWS, COLUMNS / 2};
  sluice_layout rows = SLUICE_LAYOUT_INIT, columns = SLUICE_LAYOUT_INIT, boxed = SLUICE_LAYOUT_INIT;
  sluice_box boxes[3];
  sluice_view view = {NULL, 0, NULL, NULL, 2, SLUICE_F32, 1, 0}, views[2];
  sluice_checkpoint_tensor tensor;
  sluice_checkpoint_options options = SLUICE_CHECKPOINT_OPTIONS_INIT;
  sluice_metric metrics[64];
  int64_t count = 64, i, b;
  float saved[ROWS * COLUMNS], loaded[ROWS * COLUMNS];
  char uri[64];
  rows.mesh = columns.mesh = kMesh;
  rows.mesh_ndim = columns.mesh_ndim = 1;
  rows.placements = "S(0)";
  columns.placements = "S(1)";
  for (i = 0; i < ROWS * COLUMNS; ++i) {
    saved[i] = i % 2 == 0 ? (float)(rank * ROWS / 2 * COLUMNS + i / 2) : -1;
  }
  view.data = saved;
  view.shape = rows_shape;
  view.strides = kRowStrides;
  tensor = weight(&rows, &view, 1);
  tensor.file_dtype = SLUICE_BF16;  // holds whole numbers to 256
  options.piece_bytes = 4096;
  CHECK_OK(sluice_checkpoint_save(session, directory, &tensor, 1, &options, metrics, &count));
  CHECK(metric(metrics, count, "tensors") == 1);

  snprintf(uri, sizeof uri, "file:%s", directory);
  tensor = weight(&columns, &view, 1);
  view.data = loaded;
  view.shape = columns_shape;
  view.strides = NULL;
  memset(loaded, 0, sizeof loaded);
  CHECK_OK(sluice_checkpoint_load(session, uri, &tensor, 1, NULL, NULL, NULL));
  for (i = 0; i < ROWS * COLUMNS / 2; ++i) {
    const int64_t row = i / (COLUMNS / 2), column = rank * (COLUMNS / 2) + i % (COLUMNS / 2);
    CHECK(loaded[i] == (float)(row * COLUMNS + column));
  }

  for (b = 0; b < 3; ++b) {
    boxes[b].offset = kOffsets[b];
    boxes[b].shape = kBoxShapes[b];
    boxes[b].ndim = 2;
    boxes[b].rank = b > 0;
  }
  boxed.boxes = boxes;
  boxed.num_boxes = 3;
  for (b = 0; b < 2; ++b) {
    views[b] = view;
    views[b].data = loaded + b * ROWS;
    views[b].shape = kBoxShapes[rank == 0 ? 0 : 1 + b];
  }
  tensor = weight(&boxed, views, rank == 0 ? 1 : 2);
  CHECK_OK(sluice_checkpoint_load(session, uri, &tensor, 1, NULL, NULL, NULL));
  for (b = 0; b < (rank == 0 ? 1 : 2); ++b) {
    const sluice_box* const box = &boxes[rank == 0 ? 0 : 1 + b];
    const float* const at = (const float*)views[b].data;
    for (i = 0; i < box->shape[0] * box->shape[1]; ++i) {
      const int64_t row = box->offset[0] + i / box->shape[1];
      CHECK(at[i] == (float)(row * COLUMNS + box->offset[1] + i % box->shape[1]));
    }
  }

  load_by_catalog(session, uri, &columns, rank);

  // What one rank gets wrong, both hear of; and then it works again.
  CHECK(sluice_checkpoint_load(session, rank == 0 ? uri : NULL, &tensor, 1, NULL, NULL, NULL) < 0);
  tensor.name = "bias";
  CHECK(sluice_checkpoint_load(session, uri, &tensor, 1, NULL, NULL, NULL) < 0);
  tensor.name = "weight";
  CHECK(sluice_checkpoint_load(session, uri, &tensor, rank == 0 ? 1 : -1, NULL, NULL, NULL) < 0);
  count = -1;
  CHECK_FAILS(sluice_checkpoint_load(session, uri, &tensor, 1, NULL, metrics, &count),
              SLUICE_INVALID_ARGUMENT, "metrics");
  CHECK_OK(sluice_checkpoint_load(session, uri, &tensor, 1, NULL, NULL, NULL));
}

#define TEXT_BYTES 4096

// The bytes of a file as a text, in the caller's `text` of TEXT_BYTES.
static void read_text(const char* path, char* text) {
  FILE* const file = fopen(path, "rb");
  size_t i, bytes;
  CHECK(file != NULL);
  bytes = fread(text, 1, TEXT_BYTES - 1, file);
  fclose(file);
  for (i = 0; i < bytes; ++i) {
    if (text[i] == 0) text[i] = ' ';
  }
  text[bytes] = 0;
}

// One that rank 0 has, and one in boxes, of which both ranks have copies.
static void scalars_stay_scalars(sluice_session* session, int32_t rank) {
  static const int64_t kOne[1] = {1};
  static const int32_t kRanks[1] = {0};
  const sluice_box boxes[2] = {{NULL, NULL, 0, 0}, {NULL, NULL, 0, 1}};
  sluice_layout whole = SLUICE_LAYOUT_INIT, boxed = SLUICE_LAYOUT_INIT;
  sluice_view view = {NULL, 0, NULL, NULL, 0, SLUICE_F32, 1, 0};
  sluice_checkpoint_tensor tensors[2] = {SLUICE_CHECKPOINT_TENSOR_INIT,
                                         SLUICE_CHECKPOINT_TENSOR_INIT};
  sluice_tensor moved = SLUICE_TENSOR_INIT;
  sluice_transfer* transfer = NULL;
  float value = 3.5f;
  char path[80];
  char text[TEXT_BYTES];
  whole.mesh = kOne;
  whole.mesh_ndim = 1;
  whole.ranks = kRanks;
  whole.placements = "R";
  boxed.boxes = boxes;
  boxed.num_boxes = 2;
  view.data = &value;
  tensors[0].name = "at 0";
  tensors[0].layout = &whole;
  tensors[1].name = "in boxes";
  tensors[1].layout = &boxed;
  tensors[0].dtype = tensors[1].dtype = SLUICE_F32;
  tensors[0].memory.views = tensors[1].memory.views = &view;
  tensors[0].memory.count = rank == 0;
  tensors[1].memory.count = 1;
  CHECK_OK(sluice_checkpoint_save(session, directory, tensors, 2, NULL, NULL, NULL));
  snprintf(path, sizeof path, "%s/model.safetensors", directory);
  read_text(path, text);
  CHECK(strstr(text, "\"shape\":[]") != NULL && strstr(text, "[1]") == NULL);

  // Memory of one element is a scalar's.
  value = 0;
  if (rank == 1) {
    view.ndim = 1;
    view.shape = kOne;
  }
  snprintf(path, sizeof path, "file:%s", directory);
  CHECK_OK(sluice_checkpoint_load(session, path, tensors + 1, 1, NULL, NULL, NULL));
  CHECK(value == 3.5f);

  moved.name = "scalar";
  moved.src = &whole;
  moved.dst = &boxed;
  moved.src_dtype = moved.dst_dtype = SLUICE_F32;
  CHECK_OK(sluice_compile(session, &moved, 1, 0, &transfer));
  CHECK_OK(sluice_transfer_drop(transfer));
}

static unsigned char byte_of(int64_t item, int64_t i) { return (unsigned char)(item * 7 + i); }

static sluice_status generate(void* self, int64_t item, void* into, int64_t capacity,
                              int64_t* bytes) {
  int64_t i;
  CHECK(capacity == ITEM_BYTES && *bytes == capacity);
  if (item == *(int64_t*)self) {
    sluice_set_error("no such game");
    return SLUICE_NOT_FOUND;
  }
  for (i = 0; i < capacity; ++i) ((unsigned char*)into)[i] = byte_of(item, i);
  *bytes = capacity - item;  // looked at where items are sized
  return SLUICE_OK;
}

static sluice_stream_options generated(int64_t* bad_item, int32_t rank) {
  sluice_stream_options options = SLUICE_STREAM_OPTIONS_INIT;
  options.generate = generate;
  options.self = bad_item;
  options.generator_items = ITEMS;
  options.item_bytes = ITEM_BYTES;
  options.first = rank;
  options.step = 2;
  return options;
}

static void check_item(sluice_lease* lease, int64_t i, int64_t bytes) {
  const int64_t item = sluice_lease_item(lease, i);
  sluice_view view;
  int64_t at;
  CHECK_OK(sluice_lease_view(lease, i, &view));
  CHECK(view.ndim == 1 && view.shape[0] == bytes && view.dtype == SLUICE_U8 && view.device == 1);
  for (at = 0; at < bytes; ++at) {
    CHECK(((const unsigned char*)view.data)[view.byte_offset + at] == byte_of(item, at));
  }
}

// A managed tensor of DLPack, as far as it is needed to give it back.
struct managed {
  void* data;
  char rest[40];
  void* context;
  void (*deleter)(struct managed*);
};

// What ranks tell each other beside tensors.
static pthread_barrier_t both;
static char cursors[2][512];
static size_t cursor_bytes[2];

static void* release_elsewhere(void* lease) {
  sluice_view view;
  CHECK_FAILS(sluice_lease_view((sluice_lease*)lease, 0, &view), SLUICE_FAILED_PRECONDITION,
              "another thread");
  CHECK_FAILS(sluice_lease_release((sluice_lease*)lease), SLUICE_FAILED_PRECONDITION,
              "another thread");
  return NULL;
}

static void batches(sluice_session* session, int32_t rank) {
  int64_t never = -1;
  sluice_stream_options options = generated(&never, rank);
  sluice_stream* stream = NULL;
  sluice_lease* lease = NULL;
  sluice_lease* held = NULL;
  sluice_metric metrics[64];
  sluice_view view;
  struct managed* managed = NULL;
  pthread_t thread;
  void* given = NULL;
  char merged[512];
  const void* all[2] = {NULL, NULL};
  char* const cursor = cursors[rank];
  size_t bytes = sizeof cursors[rank], merged_bytes = sizeof merged, part = 3;
  int64_t count = 64;
  options.batch_items = 2;
  options.no_exchange = 1;  // so that a rank may close it before the other one is done
  CHECK_OK(sluice_stream_open(session, &options, &stream));
  CHECK(sluice_stream_items(stream) == ITEMS / 2);
  CHECK_FAILS(sluice_session_close(session), SLUICE_FAILED_PRECONDITION, "stream");
  CHECK_OK(sluice_stream_next(stream, &lease));
  CHECK(sluice_lease_items(lease) == 2 && sluice_lease_epoch(lease, 0) == 0);
  CHECK(sluice_lease_item(lease, 0) == rank && sluice_lease_item(lease, 1) == rank + 2);
  CHECK(sluice_lease_item(lease, 2) == -1 && sluice_lease_epoch(lease, -1) == -1);
  CHECK(pthread_create(&thread, NULL, release_elsewhere, lease) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  check_item(lease, 0, ITEM_BYTES);
  check_item(lease, 1, ITEM_BYTES);
  CHECK_FAILS(sluice_lease_view(lease, 2, &view), SLUICE_INVALID_ARGUMENT, "no item 2");
  CHECK_OK(sluice_lease_view(lease, -1, &view));
  CHECK(view.ndim == 2 && view.shape[0] == 2 && view.shape[1] == ITEM_BYTES);
  CHECK_OK(sluice_stream_next(stream, &held));
  CHECK(sluice_stream_next(stream, &(sluice_lease*){NULL}) == SLUICE_FAILED_PRECONDITION);
  CHECK_OK(sluice_lease_to_dlpack(held, -1, &given));
  managed = (struct managed*)given;
  CHECK(((unsigned char*)managed->data)[1] == byte_of(rank + 4, 1));
  managed->deleter(managed);
  CHECK_OK(sluice_lease_release(lease));
  CHECK_OK(sluice_stream_cursor(stream, cursor, &bytes));
  CHECK(bytes > 0 && bytes < sizeof cursors[rank]);
  CHECK_OK(sluice_stream_metrics(stream, metrics, &count));
  CHECK(metric(metrics, count, "items") == 4);
  CHECK_OK(sluice_stream_close(stream));

  // From the cursor on, of both ranks: the other items, and then the end.
  cursor_bytes[rank] = bytes;
  pthread_barrier_wait(&both);
  all[0] = cursors[0];
  CHECK_FAILS(sluice_merge_cursors(all, cursor_bytes, 2, merged, &merged_bytes),
              SLUICE_INVALID_ARGUMENT, "cursors[1] is NULL");
  all[1] = cursors[1];
  CHECK_OK(sluice_merge_cursors(all, cursor_bytes, 2, merged, &merged_bytes));
  CHECK(merged_bytes > 0 && merged_bytes < sizeof merged);
  CHECK(sluice_merge_cursors(all, &part, 1, NULL, &part) < 0);
  options.cursor = merged;
  options.cursor_bytes = merged_bytes;
  CHECK_OK(sluice_stream_open(session, &options, &stream));
  CHECK_OK(sluice_stream_next(stream, &lease));
  CHECK(sluice_lease_item(lease, 0) == rank + 8);
  check_item(lease, 1, ITEM_BYTES);
  CHECK_OK(sluice_lease_release(lease));
  CHECK(sluice_stream_next(stream, &lease) == SLUICE_END && lease == NULL);
  CHECK(sluice_stream_ready(stream) == 1);
  CHECK_OK(sluice_stream_close(stream));

  // Items of several lengths, which are no batch.
  options.cursor = NULL;
  options.cursor_bytes = 0;
  options.sized = 1;
  CHECK_OK(sluice_stream_open(session, &options, &stream));
  CHECK_OK(sluice_stream_next(stream, &lease));
  check_item(lease, 0, ITEM_BYTES - rank);
  check_item(lease, 1, ITEM_BYTES - rank - 2);
  CHECK_FAILS(sluice_lease_view(lease, -1, &view), SLUICE_INVALID_ARGUMENT, "no batch");
  CHECK(sluice_lease_to_dlpack(lease, -1, &given) == SLUICE_INVALID_ARGUMENT && given == NULL);
  CHECK_OK(sluice_stream_close(stream));
  check_item(lease, 0, ITEM_BYTES - rank);  // outlives its stream
  CHECK_OK(sluice_lease_release(lease));

  // A generator that fails says why.
  never = rank;
  options.sized = 0;
  CHECK_OK(sluice_stream_open(session, &options, &stream));
  CHECK_FAILS(sluice_stream_next(stream, &lease), SLUICE_NOT_FOUND, "no such game");
  CHECK_OK(sluice_stream_close(stream));

  // What one rank gets wrong, both hear of.
  never = -1;
  options.format = rank == 0 ? SLUICE_FORMAT_INDEX : 9;
  CHECK_FAILS(sluice_stream_open(session, &options, &stream), SLUICE_INVALID_ARGUMENT,
              "there is no format 9");
  options.format = SLUICE_FORMAT_INDEX;
  options.uri = "file:/tmp";
  CHECK_FAILS(sluice_stream_open(session, &options, &stream), SLUICE_INVALID_ARGUMENT, "`uri`");
  CHECK(stream == NULL);
}

// Numbers of a file, scaled on their way.
static void transformed(sluice_session* session, int32_t rank) {
  static const int64_t kImage[3] = {1, 2, 3};
  static const float kScale[3] = {1, 2, 4}, kBias[3] = {0, 0, 1};
  static const char kIndex[] =
      "{\"version\": 1, \"format\": \"raw\", \"items\": 2, \"objects\": "
      "[{\"name\": \"items\", \"bytes\": 24, \"items\": 2, \"item_bytes\": 12}]}";
  sluice_stream_options options = SLUICE_STREAM_OPTIONS_INIT;
  sluice_transform transform = SLUICE_TRANSFORM_INIT;
  sluice_stream* stream = NULL;
  sluice_lease* lease = NULL;
  sluice_view view;
  char uri[64], path[64];
  int64_t item, i;
  snprintf(uri, sizeof uri, "file:%s/raw", directory);
  if (rank == 0) {
    FILE* file;
    snprintf(path, sizeof path, "%s/raw/items", directory);
    file = fopen(path, "wb");
    CHECK(file != NULL);
    for (i = 0; i < 4 * 6; ++i) CHECK(fputc((int)i, file) == (int)i);
    CHECK(fclose(file) == 0);
  }
  transform.src = SLUICE_U8;
  transform.dst = SLUICE_F32;
  transform.shape = kImage;
  transform.channels = 3;
  transform.channel_scale = kScale;
  transform.channel_bias = kBias;
  transform.planar = 1;
  options.uri = uri;
  // Rank 0's index says what is there, for all ranks.
  if (rank == 0) options.index = kIndex;
  CHECK_OK(sluice_stream_open(session, &options, &stream));
  CHECK(sluice_stream_items(stream) == 2);
  CHECK_OK(sluice_stream_close(stream));
  options.index = NULL;
  options.format = SLUICE_FORMAT_RAW;
  options.item_bytes = 6;
  options.transform = &transform;
  options.shuffle = 1;
  options.seed = 3;
  options.epochs = 2;
  CHECK_OK(sluice_stream_open(session, &options, &stream));
  for (item = 0; item < 8; ++item) {
    CHECK_OK(sluice_stream_next(stream, &lease));
    CHECK(sluice_lease_epoch(lease, 0) == item / 4);
    CHECK_OK(sluice_lease_view(lease, 0, &view));
    CHECK(view.ndim == 3 && view.shape[0] == 3 && view.shape[2] == 2 && view.dtype == SLUICE_F32);
    for (i = 0; i < 6; ++i) {
      const int64_t channel = i / 2, byte = 6 * sluice_lease_item(lease, 0) + i % 2 * 3 + channel;
      const float* const data = (const float*)((const char*)view.data + view.byte_offset);
      CHECK(data[i] == (float)byte * kScale[channel] + kBias[channel]);
    }
    CHECK_OK(sluice_lease_release(lease));
  }
  CHECK(sluice_stream_next(stream, &lease) == SLUICE_END);
  CHECK_FAILS(sluice_session_close(session), SLUICE_FAILED_PRECONDITION, "streams are open");
}

static void* consume(void* given) {
  sluice_stream* const stream = (sluice_stream*)given;
  sluice_lease* lease = NULL;
  sluice_status status;
  int64_t items = 0;
  while ((status = sluice_stream_next(stream, &lease)) == SLUICE_OK) {
    check_item(lease, 0, ITEM_BYTES);
    CHECK_OK(sluice_lease_release(lease));
    ++items;
  }
  CHECK(status == SLUICE_END && items == ITEMS / 2);
  CHECK_OK(sluice_stream_close(stream));
  return NULL;
}

// With a progress thread a stream may be another thread's.
static void consumed_elsewhere(sluice_session* session, int32_t rank) {
  int64_t never = -1;
  const sluice_stream_options options = generated(&never, rank);
  sluice_stream* stream = NULL;
  pthread_t thread;
  CHECK_OK(sluice_stream_open(session, &options, &stream));
  CHECK(pthread_create(&thread, NULL, consume, stream) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

// No cursor is so long that its bytes cannot be taken. All ranks hear of it, and go on.
static void cursor_without_end(sluice_session* session, int32_t rank) {
  int64_t never = -1;
  sluice_stream_options options = generated(&never, rank);
  sluice_stream* stream = NULL;
  if (rank == 0) {
    options.cursor = "cursor";
    options.cursor_bytes = (size_t)-1;
  }
  CHECK(sluice_stream_open(session, &options, &stream) < 0 && stream == NULL);
  CHECK(strstr(sluice_last_error(), "did not call") == NULL);
  CHECK_OK(sluice_poll(session));
}

static _Atomic(sluice_stream*) held_stream;
static atomic_int is_held, is_released;

// Holds all items up until the test releases them. It cannot use its own stream.
static sluice_status hold_up(void* self, int64_t item, void* into, int64_t capacity,
                             int64_t* bytes) {
  sluice_lease* lease = NULL;
  while (atomic_load(&held_stream) == NULL) usleep(1000);
  if (!atomic_load(&is_released)) {
    CHECK_FAILS(sluice_stream_close(atomic_load(&held_stream)), SLUICE_FAILED_PRECONDITION,
                "generator");
    CHECK_FAILS(sluice_stream_next(atomic_load(&held_stream), &lease), SLUICE_FAILED_PRECONDITION,
                "generator");
  }
  while (!atomic_load(&is_released)) usleep(1000);
  return generate(self, item, into, capacity, bytes);
}

// A session is not destroyed below a thread that waits for its stream.
static void destroyed_below_a_thread(sluice_session* session, int32_t rank) {
  int64_t never = -1;
  sluice_stream_options options = generated(&never, rank);
  sluice_stream* stream = NULL;
  pthread_t thread;
  options.generate = hold_up;
  CHECK_OK(sluice_stream_open(session, &options, &stream));
  atomic_store(&held_stream, stream);
  CHECK(pthread_create(&thread, NULL, consume, stream) == 0);
  while (sluice_stream_end_update(stream) == SLUICE_OK) usleep(1000);
  CHECK_FAILS(sluice_session_destroy(session), SLUICE_FAILED_PRECONDITION, "call of a stream");
  atomic_store(&is_released, 1);
  CHECK(pthread_join(thread, NULL) == 0);
}

static void* take_one(void* given) {
  sluice_stream* const stream = (sluice_stream*)given;
  sluice_lease* lease = NULL;
  CHECK_OK(sluice_stream_next(stream, &lease));
  CHECK_OK(sluice_lease_release(lease));
  while (!atomic_load(&is_held)) usleep(1000);
  CHECK_OK(sluice_stream_close(stream));
  return NULL;
}

static sluice_status hold_all_but_first(void* self, int64_t item, void* into, int64_t capacity,
                                        int64_t* bytes) {
  if (item > 0) atomic_store(&is_held, 1);
  while (item > 0 && !atomic_load(&is_released)) usleep(1000);
  return generate(self, item, into, capacity, bytes);
}

// Nor below one that closes its stream, and still waits for a generator.
static void destroyed_below_a_close(sluice_session* session, int32_t rank) {
  int64_t never = -1;
  sluice_stream_options options = generated(&never, rank);
  sluice_stream* stream = NULL;
  pthread_t thread;
  atomic_store(&is_released, 0);
  options.generate = hold_all_but_first;
  CHECK_OK(sluice_stream_open(session, &options, &stream));
  CHECK(pthread_create(&thread, NULL, take_one, stream) == 0);
  // The session can be closed as soon as the stream takes no part in it any more.
  while (sluice_session_close(session) == SLUICE_FAILED_PRECONDITION) usleep(1000);
  CHECK_FAILS(sluice_session_destroy(session), SLUICE_FAILED_PRECONDITION, "call of a stream");
  atomic_store(&is_released, 1);
  CHECK(pthread_join(thread, NULL) == 0);
}

int storage_test(void) {
  sluice_session_options options = SLUICE_SESSION_OPTIONS_INIT;
  char command[64];
  CHECK(mkdtemp(directory) != NULL);
  on_ranks(2, NULL, save_and_load);
  on_ranks(2, NULL, scalars_stay_scalars);
  CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
  on_ranks(2, NULL, batches);
  on_ranks(2, NULL, cursor_without_end);
  pthread_barrier_destroy(&both);
  snprintf(command, sizeof command, "mkdir %s/raw", directory);
  CHECK(system(command) == 0);
  closes_sessions = 0;  // a stream ends with its session
  on_ranks(2, NULL, transformed);
  closes_sessions = 1;
  options.progress_thread = 1;
  on_ranks(2, &options, consumed_elsewhere);
  on_ranks(1, &options, destroyed_below_a_thread);
  on_ranks(1, &options, destroyed_below_a_close);
  snprintf(command, sizeof command, "rm -r %s", directory);
  CHECK(system(command) == 0);
  return 0;
}
