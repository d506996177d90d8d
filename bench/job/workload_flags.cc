// Declaring the flags; make_workload.cc reads what they name.
#include "job/workload_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/flags.h"
#include "workload/collectives.h"

namespace sluice::bench {

void AddWorkloadFlags(CLI::App* app, WorkloadOptions* o) {
  const char* what =
      "What to move (one of --cases, --preset, --model, --collective, or --src and --dst)";
  InlineFlags* in = &o->inline_flags;
  app->add_option(
         "--cases", o->cases_file,
         "case file: JSON, which docs/layouts.md describes; or recipes, which comes with the "
         "program")
      ->group(what);
  app->add_option("--preset", o->preset,
                  "etha-N-no_partial, -replicate_dp or -partial_dp, N = 1..8: cases of published "
                  "comparisons, each from ranks 0-7 to ranks 8-15, so they take 16 ranks")
      ->group(what);
  AddSwitch(app, "--list-presets", &o->list_presets, "print them with their layouts, and end")
      ->group(what);
  app->add_option("--tensors", o->tensors, "tensors of a preset [2], or of one --shape [1]")
      ->group(what);
  app->add_option(
         "--model", o->model_file,
         "model file: {name: {shape, dtype}}; or the name of one in share/sluice/models, e.g. "
         "llama-3-8b")
      ->group(what);
  app->add_option("--system", o->system_file,
                  "system file: {train, generation}, which says how many ranks it takes; or the "
                  "name of one in "
                  "share/sluice/systems, e.g. llama-3-8b-fsdp4-tp2dp2 (bench/systems)")
      ->group(what);
  app->add_option("--layers", o->cut.layers, "keep the first N layers of the model")->group(what);
  app->add_option("--scale", o->cut.scale, "divide the dimensions of the model by K")->group(what);
  app->add_option(
         "--replicas", o->replicas,
         "so many times the data-parallel ranks of the system, on both sides; a list makes "
         "a case of each, e.g. 1,16 [1]")
      ->group(what);
  app->add_option("--shape", in->shape, "tensor shape, e.g. 4096,4096")->group(what);
  app->add_option("--dtype", in->dtype, "element type, e.g. bf16 [f32]")->group(what);
  app->add_option("--collective", in->collective,
                  absl::StrCat("layouts of ", absl::StrJoin(CollectiveNames(), ", "),
                               " over the first --ranks ranks; rank 0 is the root; --shape is of "
                               "all parts together [about 4M elements]"))
      ->group(what);
  app->add_option("--ranks", in->ranks, "of --collective: how many")
      ->check(CLI::Range(1, 1 << 17))
      ->group(what);
  app->add_option("--src", in->src,
                  "source layout, MESH@RANKS:PLACEMENTS, e.g. 2,4@0-7:R,S(0); without @RANKS on "
                  "ranks from 0 on; mesh dimensions are visited left to right, or in an order that "
                  "follows: 2,4:S(0),S(0):1,0")
      ->group(what);
  app->add_option("--dst", in->dst,
                  "target layout, likewise: without @RANKS on ranks from 0 on, too")
      ->group(what);
  AddSwitch(app, "--disjoint", &in->disjoint,
            "ranks of such a --dst begin after the last one of the source")
      ->group(what);
  app->add_option("--src-mesh", in->src_mesh,
                  "in place of --src, with the next two: source mesh, e.g. 2,2")
      ->group(what);
  app->add_option("--src-ranks", in->src_ranks, "source ranks, e.g. 0-3 or 0,2,1,3")->group(what);
  app->add_option("--src-placements", in->src_placements, "e.g. 'R,S(0)'")->group(what);
  app->add_option("--dst-mesh", in->dst_mesh, "in place of --dst, with the next two: target mesh")
      ->group(what);
  app->add_option("--dst-ranks", in->dst_ranks, "target ranks")->group(what);
  app->add_option("--dst-placements", in->dst_placements, "e.g. 'S(1)' or 'SS(0,2),S(0)'")
      ->group(what);
  app->add_option("-b,--minbytes", in->begin_bytes, "sweep the first dimension from this size")
      ->group(what);
  app->add_option("-e,--maxbytes", in->end_bytes, "to this size [as -b]")->group(what);
  app->add_option("-f,--stepfactor", in->factor, "multiplying by this [2]")->group(what);
  app->add_option("-i,--stepbytes", in->step, "or adding so many bytes, in place of -f")
      ->group(what);
}

}  // namespace sluice::bench
