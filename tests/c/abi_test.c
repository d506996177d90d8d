// The layout of the C API's structs and the values of its names, frozen: programs that were
// compiled with an older header depend on them. New fields come at the end, and change the sizes
// alone.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "c/check.h"
#include "c/tests.h"
#include "sluice/sluice.h"

struct row {
  const char* what;
  size_t is;
  size_t was;
};

#define SIZE(type, was) \
  { "sizeof " #type, sizeof(type), was }
#define FIELD(type, field, was) \
  { #type "." #field, offsetof(type, field), was }

// clang-format off
static const struct row kLayout[] = {
    SIZE(sluice_view, 48), FIELD(sluice_view, data, 0), FIELD(sluice_view, byte_offset, 8),
    FIELD(sluice_view, shape, 16), FIELD(sluice_view, strides, 24), FIELD(sluice_view, ndim, 32),
    FIELD(sluice_view, dtype, 36), FIELD(sluice_view, device, 40), FIELD(sluice_view, ordinal, 44),
    SIZE(sluice_views, 16), FIELD(sluice_views, views, 0), FIELD(sluice_views, count, 8),
    SIZE(sluice_box, 24), FIELD(sluice_box, offset, 0), FIELD(sluice_box, shape, 8),
    FIELD(sluice_box, ndim, 16), FIELD(sluice_box, rank, 20),
    SIZE(sluice_layout, 80), FIELD(sluice_layout, size, 0), FIELD(sluice_layout, mesh, 8),
    FIELD(sluice_layout, ranks, 16), FIELD(sluice_layout, placements, 24),
    FIELD(sluice_layout, order, 32), FIELD(sluice_layout, whole, 40),
    FIELD(sluice_layout, offset, 48), FIELD(sluice_layout, boxes, 56),
    FIELD(sluice_layout, num_boxes, 64), FIELD(sluice_layout, mesh_ndim, 72),
    FIELD(sluice_layout, reserved, 76),
    SIZE(sluice_listen_options, 32), FIELD(sluice_listen_options, size, 0),
    FIELD(sluice_listen_options, bind, 8), FIELD(sluice_listen_options, token, 16),
    FIELD(sluice_listen_options, port, 24), FIELD(sluice_listen_options, reserved, 28),
    SIZE(sluice_connect_store_options, 32), FIELD(sluice_connect_store_options, size, 0),
    FIELD(sluice_connect_store_options, token, 8),
    FIELD(sluice_connect_store_options, timeout_s, 16),
    FIELD(sluice_connect_store_options, connect_timeout_s, 24),
    SIZE(sluice_store_calls, 64), FIELD(sluice_store_calls, size, 0),
    FIELD(sluice_store_calls, self, 8), FIELD(sluice_store_calls, set, 16),
    FIELD(sluice_store_calls, get, 24), FIELD(sluice_store_calls, add, 32),
    FIELD(sluice_store_calls, compare_set, 40), FIELD(sluice_store_calls, list, 48),
    FIELD(sluice_store_calls, destroy, 56),
    SIZE(sluice_role, 16), FIELD(sluice_role, role, 0), FIELD(sluice_role, count, 8),
    FIELD(sluice_role, reserved, 12),
    SIZE(sluice_world_options, 128), FIELD(sluice_world_options, size, 0),
    FIELD(sluice_world_options, store, 8), FIELD(sluice_world_options, own_store, 16),
    FIELD(sluice_world_options, token, 24), FIELD(sluice_world_options, token_file, 32),
    FIELD(sluice_world_options, name, 40), FIELD(sluice_world_options, role, 48),
    FIELD(sluice_world_options, roles, 56), FIELD(sluice_world_options, num_roles, 64),
    FIELD(sluice_world_options, wires, 72), FIELD(sluice_world_options, bind, 80),
    FIELD(sluice_world_options, timeout_s, 88), FIELD(sluice_world_options, store_timeout_s, 96),
    FIELD(sluice_world_options, lease_s, 104), FIELD(sluice_world_options, rank, 112),
    FIELD(sluice_world_options, count, 116), FIELD(sluice_world_options, serve, 120),
    FIELD(sluice_world_options, from_environment, 124),
    SIZE(sluice_member, 40), FIELD(sluice_member, size, 0), FIELD(sluice_member, role, 8),
    FIELD(sluice_member, host, 16), FIELD(sluice_member, rank, 24), FIELD(sluice_member, pid, 28),
    FIELD(sluice_member, alive, 32), FIELD(sluice_member, reserved, 36),
    SIZE(sluice_session_options, 72), FIELD(sluice_session_options, size, 0),
    FIELD(sluice_session_options, bucket_bytes, 8),
    FIELD(sluice_session_options, budget_buckets, 16),
    FIELD(sluice_session_options, budget_bytes, 24),
    FIELD(sluice_session_options, trace_events, 32), FIELD(sluice_session_options, timeout_s, 40),
    FIELD(sluice_session_options, patience_s, 48), FIELD(sluice_session_options, max_in_flight, 56),
    FIELD(sluice_session_options, progress_thread, 60),
    FIELD(sluice_session_options, no_coalesce, 64), FIELD(sluice_session_options, no_direct, 68),
    SIZE(sluice_epoch_options, 32), FIELD(sluice_epoch_options, size, 0),
    FIELD(sluice_epoch_options, at_least, 8), FIELD(sluice_epoch_options, num_at_least, 16),
    FIELD(sluice_epoch_options, timeout_s, 24),
    SIZE(sluice_metric, 16), FIELD(sluice_metric, name, 0), FIELD(sluice_metric, value, 8),
    SIZE(sluice_tensor, 56), FIELD(sluice_tensor, size, 0), FIELD(sluice_tensor, name, 8),
    FIELD(sluice_tensor, shape, 16), FIELD(sluice_tensor, src, 24), FIELD(sluice_tensor, dst, 32),
    FIELD(sluice_tensor, ndim, 40), FIELD(sluice_tensor, src_dtype, 44),
    FIELD(sluice_tensor, dst_dtype, 48), FIELD(sluice_tensor, window, 52),
    SIZE(sluice_half, 64), FIELD(sluice_half, size, 0), FIELD(sluice_half, name, 8),
    FIELD(sluice_half, shape, 16), FIELD(sluice_half, layout, 24), FIELD(sluice_half, memory, 32),
    FIELD(sluice_half, ndim, 48), FIELD(sluice_half, dtype, 52), FIELD(sluice_half, window, 56),
    FIELD(sluice_half, reserved, 60),
    SIZE(sluice_rename, 16), FIELD(sluice_rename, target, 0), FIELD(sluice_rename, source, 8),
    SIZE(sluice_own, 72), FIELD(sluice_own, size, 0), FIELD(sluice_own, sources, 8),
    FIELD(sluice_own, num_sources, 16), FIELD(sluice_own, targets, 24),
    FIELD(sluice_own, num_targets, 32), FIELD(sluice_own, renames, 40),
    FIELD(sluice_own, num_renames, 48), FIELD(sluice_own, priority, 56),
    FIELD(sluice_own, late_targets, 60), FIELD(sluice_own, ignore_unused_sources, 64),
    FIELD(sluice_own, reserved, 68),
    SIZE(sluice_start_options, 24), FIELD(sluice_start_options, size, 0),
    FIELD(sluice_start_options, version, 8), FIELD(sluice_start_options, events, 16),
    FIELD(sluice_start_options, late, 20),
    SIZE(sluice_event, 40), FIELD(sluice_event, size, 0), FIELD(sluice_event, run, 8),
    FIELD(sluice_event, tensor, 16), FIELD(sluice_event, message, 24),
    FIELD(sluice_event, kind, 32), FIELD(sluice_event, status, 36),
    SIZE(sluice_checkpoint_tensor, 64), FIELD(sluice_checkpoint_tensor, size, 0),
    FIELD(sluice_checkpoint_tensor, name, 8), FIELD(sluice_checkpoint_tensor, shape, 16),
    FIELD(sluice_checkpoint_tensor, layout, 24), FIELD(sluice_checkpoint_tensor, memory, 32),
    FIELD(sluice_checkpoint_tensor, ndim, 48), FIELD(sluice_checkpoint_tensor, dtype, 52),
    FIELD(sluice_checkpoint_tensor, file_dtype, 56), FIELD(sluice_checkpoint_tensor, reserved, 60),
    SIZE(sluice_checkpoint_entry, 72), FIELD(sluice_checkpoint_entry, size, 0),
    FIELD(sluice_checkpoint_entry, tensor, 8), FIELD(sluice_checkpoint_entry, file, 16),
    FIELD(sluice_checkpoint_entry, shape, 24), FIELD(sluice_checkpoint_entry, strides, 32),
    FIELD(sluice_checkpoint_entry, offset, 40), FIELD(sluice_checkpoint_entry, begin, 48),
    FIELD(sluice_checkpoint_entry, bytes, 56), FIELD(sluice_checkpoint_entry, ndim, 64),
    FIELD(sluice_checkpoint_entry, dtype, 68), SIZE(sluice_checkpoint_options, 112),
    FIELD(sluice_checkpoint_options, size, 0),
    FIELD(sluice_checkpoint_options, ca_file, 8),
    FIELD(sluice_checkpoint_options, budget_bytes, 16), FIELD(sluice_checkpoint_options, slots, 24),
    FIELD(sluice_checkpoint_options, piece_bytes, 32),
    FIELD(sluice_checkpoint_options, shard_bytes_max, 40),
    FIELD(sluice_checkpoint_options, timeout_s, 48),
    FIELD(sluice_checkpoint_options, backoff_s, 56),
    FIELD(sluice_checkpoint_options, request_timeout_s, 64),
    FIELD(sluice_checkpoint_options, attempts_max, 72),
    FIELD(sluice_checkpoint_options, connections, 76),
    FIELD(sluice_checkpoint_options, catalog, 80), FIELD(sluice_checkpoint_options, num_entries, 88),
    FIELD(sluice_checkpoint_options, s3_endpoint, 96),
    FIELD(sluice_checkpoint_options, s3_region, 104),
    SIZE(sluice_transform, 96), FIELD(sluice_transform, size, 0),
    FIELD(sluice_transform, channel_scale, 8), FIELD(sluice_transform, channel_bias, 16),
    FIELD(sluice_transform, shape, 24), FIELD(sluice_transform, channels, 32),
    FIELD(sluice_transform, crop_top, 40), FIELD(sluice_transform, crop_left, 48),
    FIELD(sluice_transform, crop_height, 56), FIELD(sluice_transform, crop_width, 64),
    FIELD(sluice_transform, src, 72), FIELD(sluice_transform, dst, 76),
    FIELD(sluice_transform, scale, 80), FIELD(sluice_transform, bias, 84),
    FIELD(sluice_transform, planar, 88), FIELD(sluice_transform, reserved, 92),
    SIZE(sluice_stream_options, 280), FIELD(sluice_stream_options, size, 0),
    FIELD(sluice_stream_options, uri, 8), FIELD(sluice_stream_options, generate, 16),
    FIELD(sluice_stream_options, self, 24), FIELD(sluice_stream_options, ca_file, 32),
    FIELD(sluice_stream_options, cursor, 40), FIELD(sluice_stream_options, cursor_bytes, 48),
    FIELD(sluice_stream_options, transform, 56), FIELD(sluice_stream_options, item_bytes, 64),
    FIELD(sluice_stream_options, generator_items, 72),
    FIELD(sluice_stream_options, generate_ahead, 80), FIELD(sluice_stream_options, first, 88),
    FIELD(sluice_stream_options, step, 96), FIELD(sluice_stream_options, end, 104),
    FIELD(sluice_stream_options, seed, 112), FIELD(sluice_stream_options, shuffle_block_items, 120),
    FIELD(sluice_stream_options, epochs, 128), FIELD(sluice_stream_options, budget_bytes, 136),
    FIELD(sluice_stream_options, slots, 144), FIELD(sluice_stream_options, piece_bytes, 152),
    FIELD(sluice_stream_options, batch_items, 160), FIELD(sluice_stream_options, timeout_s, 168),
    FIELD(sluice_stream_options, backoff_s, 176),
    FIELD(sluice_stream_options, request_timeout_s, 184),
    FIELD(sluice_stream_options, hedge_quantile, 192),
    FIELD(sluice_stream_options, hedge_extra_share_max, 200),
    FIELD(sluice_stream_options, format, 208), FIELD(sluice_stream_options, generate_order, 212),
    FIELD(sluice_stream_options, sized, 216), FIELD(sluice_stream_options, generator_threads, 220),
    FIELD(sluice_stream_options, connections, 224), FIELD(sluice_stream_options, shuffle, 228),
    FIELD(sluice_stream_options, as_they_come, 232), FIELD(sluice_stream_options, no_exchange, 236),
    FIELD(sluice_stream_options, hedge, 240), FIELD(sluice_stream_options, attempts_max, 244),
    FIELD(sluice_stream_options, buffers, 248), FIELD(sluice_stream_options, reserved, 252),
    FIELD(sluice_stream_options, s3_endpoint, 256), FIELD(sluice_stream_options, s3_region, 264),
    FIELD(sluice_stream_options, index, 272),
};

struct name {
  const char* what;
  int is;
  int was;
};

#define NAME(name, was) \
  { #name, name, was }

static const struct name kNames[] = {
    NAME(SLUICE_OK, 0), NAME(SLUICE_PENDING, 1), NAME(SLUICE_END, 2), NAME(SLUICE_CANCELLED, -1),
    NAME(SLUICE_UNKNOWN, -2), NAME(SLUICE_INVALID_ARGUMENT, -3), NAME(SLUICE_DEADLINE_EXCEEDED, -4),
    NAME(SLUICE_NOT_FOUND, -5), NAME(SLUICE_ALREADY_EXISTS, -6), NAME(SLUICE_PERMISSION_DENIED, -7),
    NAME(SLUICE_RESOURCE_EXHAUSTED, -8), NAME(SLUICE_FAILED_PRECONDITION, -9),
    NAME(SLUICE_ABORTED, -10), NAME(SLUICE_OUT_OF_RANGE, -11), NAME(SLUICE_UNIMPLEMENTED, -12),
    NAME(SLUICE_INTERNAL, -13), NAME(SLUICE_UNAVAILABLE, -14), NAME(SLUICE_DATA_LOSS, -15),
    NAME(SLUICE_UNAUTHENTICATED, -16), NAME(SLUICE_NO_DTYPE, 0), NAME(SLUICE_F64, 1),
    NAME(SLUICE_F32, 2), NAME(SLUICE_F16, 3), NAME(SLUICE_BF16, 4), NAME(SLUICE_F8E4M3, 5),
    NAME(SLUICE_F8E5M2, 6), NAME(SLUICE_I64, 7), NAME(SLUICE_I32, 8), NAME(SLUICE_I8, 9),
    NAME(SLUICE_U8, 10), NAME(SLUICE_I16, 11), NAME(SLUICE_U16, 12), NAME(SLUICE_U32, 13),
    NAME(SLUICE_U64, 14), NAME(SLUICE_BOOL, 15), NAME(SLUICE_F8E8M0, 16), NAME(SLUICE_F4E2M1X2, 17),
    NAME(SLUICE_I4X2, 18), NAME(SLUICE_F8E4M3FNUZ, 19), NAME(SLUICE_F8E5M2FNUZ, 20),
    NAME(SLUICE_C64, 21), NAME(SLUICE_C128, 22), NAME(SLUICE_MEMBERS_NOW, 0),
    NAME(SLUICE_MEMBERS_EPOCH, 1), NAME(SLUICE_MEMBERS_JOINERS, 2), NAME(SLUICE_NEEDS_MEMORY, 0),
    NAME(SLUICE_TENSOR_DONE, 1), NAME(SLUICE_RUN_FAILED, 2), NAME(SLUICE_FORMAT_INDEX, 0),
    NAME(SLUICE_FORMAT_RAW, 1), NAME(SLUICE_FORMAT_NPY, 2), NAME(SLUICE_FORMAT_SAFETENSORS, 3),
    NAME(SLUICE_GENERATE_FREE, 0), NAME(SLUICE_GENERATE_AFTER_UPDATE, 1),
    NAME(SLUICE_GENERATE_ONE_AHEAD, 2), NAME(SLUICE_API_VERSION, 1), NAME(SLUICE_NDIM_MAX, 8),
    NAME(SLUICE_WINDOW_MAX, 65535), NAME(SLUICE_PRIORITY_MAX, 3),
};
// clang-format on

// Each begins with its size, and all else in it is zero.
#define INIT(type, init)                                                  \
  do {                                                                    \
    type value = init;                                                    \
    const unsigned char* bytes = (const unsigned char*)&value;            \
    size_t i;                                                             \
    CHECK(value.size == sizeof(type));                                    \
    for (i = sizeof(size_t); i < sizeof(type); ++i) CHECK(bytes[i] == 0); \
  } while (0)

int abi_test(void) {
  size_t i;
  for (i = 0; i < sizeof kLayout / sizeof kLayout[0]; ++i) {
    if (kLayout[i].is == kLayout[i].was) continue;
    printf("%s is %zu, and was %zu\n", kLayout[i].what, kLayout[i].is, kLayout[i].was);
    CHECK(0);
  }
  for (i = 0; i < sizeof kNames / sizeof kNames[0]; ++i) {
    if (kNames[i].is == kNames[i].was) continue;
    printf("%s is %d, and was %d\n", kNames[i].what, kNames[i].is, kNames[i].was);
    CHECK(0);
  }
  CHECK(sizeof(sluice_status) == 4);
  CHECK(sizeof(sluice_run) == 8);
  INIT(sluice_layout, SLUICE_LAYOUT_INIT);
  INIT(sluice_listen_options, SLUICE_LISTEN_OPTIONS_INIT);
  INIT(sluice_connect_store_options, SLUICE_CONNECT_STORE_OPTIONS_INIT);
  INIT(sluice_store_calls, SLUICE_STORE_CALLS_INIT);
  INIT(sluice_world_options, SLUICE_WORLD_OPTIONS_INIT);
  INIT(sluice_member, SLUICE_MEMBER_INIT);
  INIT(sluice_session_options, SLUICE_SESSION_OPTIONS_INIT);
  INIT(sluice_epoch_options, SLUICE_EPOCH_OPTIONS_INIT);
  INIT(sluice_tensor, SLUICE_TENSOR_INIT);
  INIT(sluice_half, SLUICE_HALF_INIT);
  INIT(sluice_own, SLUICE_OWN_INIT);
  INIT(sluice_start_options, SLUICE_START_OPTIONS_INIT);
  INIT(sluice_event, SLUICE_EVENT_INIT);
  INIT(sluice_checkpoint_tensor, SLUICE_CHECKPOINT_TENSOR_INIT);
  INIT(sluice_checkpoint_entry, SLUICE_CHECKPOINT_ENTRY_INIT);
  INIT(sluice_checkpoint_options, SLUICE_CHECKPOINT_OPTIONS_INIT);
  INIT(sluice_transform, SLUICE_TRANSFORM_INIT);
  INIT(sluice_stream_options, SLUICE_STREAM_OPTIONS_INIT);
  CHECK(sluice_api_version() == SLUICE_API_VERSION);
  CHECK(strchr(sluice_version(), '.') != NULL);
  return 0;
}
