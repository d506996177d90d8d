// Declaring the flags; make_workload.cc reads what they name.
#include "reshard/workload_flags.h"

#include <CLI/CLI.hpp>

namespace sluice::bench {

void AddWorkloadFlags(CLI::App* app, WorkloadOptions* o) {
  const char* what = "What to move (one of --cases, --preset, --model, or the --src/--dst flags)";
  InlineFlags* in = &o->inline_flags;
  app->add_option("--cases", o->cases_file, "case file")->group(what);
  app->add_option("--preset", o->preset,
                  "etha-N-no_partial, -replicate_dp or -partial_dp, N = 1..8")
      ->group(what);
  app->add_option("--tensors", o->tensors, "tensors of a preset [2], or of one --shape [1]")
      ->group(what);
  app->add_option("--model", o->model_file, "model file: {name: {shape, dtype}}")->group(what);
  app->add_option("--system", o->system_file, "system file: {train, generation}")->group(what);
  app->add_option("--layers", o->cut.layers, "keep the first N layers of the model")->group(what);
  app->add_option("--scale", o->cut.scale, "divide the dimensions of the model by K")->group(what);
  app->add_option("--shape", in->shape, "tensor shape, e.g. 4096,4096")->group(what);
  app->add_option("--dtype", in->dtype, "element type, e.g. bf16 [f32]")->group(what);
  app->add_option("--src-mesh", in->src_mesh, "source mesh, e.g. 2,2")->group(what);
  app->add_option("--src-ranks", in->src_ranks, "source ranks, e.g. 0-3 or 0,2,1,3")->group(what);
  app->add_option("--src-placements", in->src_placements, "e.g. 'R,S(0)'")->group(what);
  app->add_option("--dst-mesh", in->dst_mesh, "target mesh")->group(what);
  app->add_option("--dst-ranks", in->dst_ranks, "target ranks")->group(what);
  app->add_option("--dst-placements", in->dst_placements, "e.g. 'S(1)' or 'SS(0,2),S(0)'")
      ->group(what);
  app->add_option("-b,--minbytes", in->begin_bytes, "sweep the first dimension from this size")
      ->group(what);
  app->add_option("-e,--maxbytes", in->end_bytes, "to this size [as -b]")->group(what);
  app->add_option("-f,--stepfactor", in->factor, "multiplying by this [2]")->group(what);
}

}  // namespace sluice::bench
