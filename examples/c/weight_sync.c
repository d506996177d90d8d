// A weight sync in C, between processes. The ranks of the first half have a model's weights, cut by
// rows. Those of the second half want them cut by columns, in a type of half the size. Each rank
// says only what it has. Every element of every version is checked.
//
//   scripts/spawn.sh -n 4 c_weight_sync
//
// Any launcher that docs/joining.md names will do. It takes at least two processes.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sluice/sluice.h"

enum { ROWS = 96, COLUMNS = 160, LAYERS = 4, VERSIONS = 3 };

// Ends the process where a call has failed. The other ranks hear of it.
static void check(sluice_status status) {
  if (status == SLUICE_OK) return;
  fprintf(stderr, "%s: %s\n", sluice_status_name(status), sluice_last_error());
  exit(1);
}

// Whole numbers that a bf16 holds, another one in each version.
static float element(int64_t version, int layer, int64_t row, int64_t column) {
  return (float)((version * 31 + layer * 17 + row * 5 + column * 3) % 256);
}

static float from_bf16(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

int main(void) {
  static const int64_t shape[2] = {ROWS, COLUMNS};
  sluice_world* world = NULL;
  sluice_session* session = NULL;
  sluice_transfer* transfer = NULL;
  sluice_layout layout = SLUICE_LAYOUT_INIT;
  sluice_half halves[LAYERS];
  sluice_view views[LAYERS];
  char names[LAYERS][32];
  int64_t mesh[1], local[2];
  int32_t* ranks;
  int layer;

  // Who takes part: all that the launcher has started.
  check(sluice_world_join(NULL, &world));
  check(sluice_world_session(world, NULL, &session));
  const int32_t rank = sluice_session_rank(session), count = sluice_session_count(session);
  if (count < 2) {
    fprintf(stderr, "this takes at least two processes\n");
    return 1;
  }

  // What this rank has: a part of each layer, and where it lies.
  const int32_t trainers = count / 2;
  const int is_trainer = rank < trainers;
  const int32_t first = is_trainer ? 0 : trainers;
  mesh[0] = is_trainer ? trainers : count - trainers;
  ranks = (int32_t*)malloc((size_t)mesh[0] * sizeof *ranks);
  for (int32_t i = 0; i < mesh[0]; ++i) ranks[i] = first + i;
  layout.mesh = mesh;
  layout.ranks = ranks;
  layout.mesh_ndim = 1;
  layout.placements = is_trainer ? "S(0)" : "S(1)";
  check(sluice_local_shape(&layout, 2, shape, rank, local));
  const int32_t dtype = is_trainer ? SLUICE_F32 : SLUICE_BF16;
  const size_t elements = (size_t)(local[0] * local[1]);
  for (layer = 0; layer < LAYERS; ++layer) {
    const sluice_half half = SLUICE_HALF_INIT;
    const sluice_view view = {NULL, 0, local, NULL, 2, dtype, 0, 0};
    snprintf(names[layer], sizeof names[layer], "layer.%d.weight", layer);
    views[layer] = view;
    views[layer].data = calloc(elements, (size_t)sluice_dtype_bytes(dtype));
    halves[layer] = half;
    halves[layer].name = names[layer];
    halves[layer].shape = shape;
    halves[layer].ndim = 2;
    halves[layer].dtype = dtype;
    halves[layer].layout = &layout;
    halves[layer].memory.views = &views[layer];
    halves[layer].memory.count = 1;
  }

  // Halves are matched by name, checked and planned, once.
  sluice_own own = SLUICE_OWN_INIT;
  own.sources = is_trainer ? halves : NULL;
  own.num_sources = is_trainer ? LAYERS : 0;
  own.targets = is_trainer ? NULL : halves;
  own.num_targets = is_trainer ? 0 : LAYERS;
  check(sluice_connect(session, &own, &transfer));

  // The ranks of a mesh of N have rows (or columns) in N runs: all as long as the first one's, but
  // for the last ones.
  const int64_t size = is_trainer ? ROWS : COLUMNS;
  const int64_t begin = (rank - first) * ((size + mesh[0] - 1) / mesh[0]);
  const int64_t row_begin = is_trainer ? begin : 0, column_begin = is_trainer ? 0 : begin;
  for (int64_t version = 1; version <= VERSIONS; ++version) {
    sluice_start_options options = SLUICE_START_OPTIONS_INIT;
    sluice_run run = 0;
    for (layer = 0; is_trainer && layer < LAYERS; ++layer) {
      float* const weights = (float*)views[layer].data;
      for (int64_t i = 0; i < (int64_t)elements; ++i) {
        weights[i] = element(version, layer, row_begin + i / local[1], i % local[1]);
      }
    }
    options.version = version;
    check(sluice_start(transfer, NULL, NULL, &options, &run));
    check(sluice_wait(session, run, -1));
    for (layer = 0; !is_trainer && layer < LAYERS; ++layer) {
      const uint16_t* const weights = (const uint16_t*)views[layer].data;
      for (int64_t i = 0; i < (int64_t)elements; ++i) {
        const int64_t column = column_begin + i % local[1];
        if (from_bf16(weights[i]) == element(version, layer, i / local[1], column)) continue;
        fprintf(stderr, "rank %d: a wrong element in %s\n", (int)rank, names[layer]);
        return 1;
      }
    }
  }

  // After OK the memory is nobody else's.
  check(sluice_session_close(session));
  check(sluice_session_destroy(session));
  sluice_world_destroy(world);
  for (layer = 0; layer < LAYERS; ++layer) free(views[layer].data);
  free(ranks);
  if (!is_trainer) {
    printf("rank %d has %d versions of %d layers, all of them right\n", (int)rank, VERSIONS,
           LAYERS);
  }
  return 0;
}
