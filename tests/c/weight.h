// A tensor of two dimensions in programs in C, which lies by rows and comes to lie by columns.
#ifndef SLUICE_TESTS_C_WEIGHT_H_
#define SLUICE_TESTS_C_WEIGHT_H_

#include "c/check.h"
#include "sluice/sluice.h"

#define ROWS 6
#define COLUMNS 12

static const int64_t kShape[2] = {ROWS, COLUMNS};

static inline float value_at(int64_t row, int64_t column) { return (float)(row * 100 + column); }

static inline sluice_layout layout_of(const int64_t* mesh, const char* placements) {
  sluice_layout layout = SLUICE_LAYOUT_INIT;
  layout.mesh = mesh;
  layout.mesh_ndim = 1;
  layout.placements = placements;
  return layout;
}

static inline sluice_tensor tensor_of(const sluice_layout* src, const sluice_layout* dst) {
  sluice_tensor tensor = SLUICE_TENSOR_INIT;
  tensor.name = "weight";
  tensor.shape = kShape;
  tensor.ndim = 2;
  tensor.src = src;
  tensor.dst = dst;
  tensor.src_dtype = tensor.dst_dtype = SLUICE_F32;
  return tensor;
}

static inline sluice_view view_of(float* data, const int64_t* shape) {
  sluice_view view = {NULL, 0, NULL, NULL, 2, SLUICE_F32, 0, 0};
  view.data = data;
  view.shape = shape;
  return view;
}

static inline sluice_status compile_weight(sluice_session* session, sluice_transfer** transfer) {
  const int64_t mesh[1] = {sluice_session_count(session)};
  const sluice_layout rows = layout_of(mesh, "S(0)"), columns = layout_of(mesh, "S(1)");
  const sluice_tensor tensor = tensor_of(&rows, &columns);
  return sluice_compile(session, &tensor, 1, 0, transfer);
}

// A rank's rows, and room for its columns.
struct parts {
  int64_t src_shape[2];
  int64_t dst_shape[2];
  float src[ROWS * COLUMNS];
  float dst[ROWS * COLUMNS];
  sluice_view src_view;
  sluice_view dst_view;
  sluice_views src_views;
  sluice_views dst_views;
};

static inline void fill(struct parts* parts, sluice_session* session) {
  const int64_t rank = sluice_session_rank(session), count = sluice_session_count(session);
  int64_t i;
  parts->src_shape[0] = ROWS / count;
  parts->src_shape[1] = COLUMNS;
  parts->dst_shape[0] = ROWS;
  parts->dst_shape[1] = COLUMNS / count;
  for (i = 0; i < ROWS / count * COLUMNS; ++i) {
    parts->src[i] = value_at(rank * (ROWS / count) + i / COLUMNS, i % COLUMNS);
  }
  for (i = 0; i < ROWS * COLUMNS; ++i) parts->dst[i] = -1;
  parts->src_view = view_of(parts->src, parts->src_shape);
  parts->dst_view = view_of(parts->dst, parts->dst_shape);
  parts->src_views.views = &parts->src_view;
  parts->dst_views.views = &parts->dst_view;
  parts->src_views.count = parts->dst_views.count = 1;
}

static inline void check(const struct parts* parts, sluice_session* session) {
  const int64_t rank = sluice_session_rank(session), columns = parts->dst_shape[1];
  int64_t i;
  for (i = 0; i < ROWS * columns; ++i) {
    CHECK(parts->dst[i] == value_at(i / columns, rank * columns + i % columns));
  }
}

#endif  // SLUICE_TESTS_C_WEIGHT_H_
