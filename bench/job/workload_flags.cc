// Declaring the flags; make_workload.cc reads what they name.
#include "job/workload_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/flag_list.h"
#include "workload/collectives.h"

namespace sluice::bench {

void AddWorkloadFlags(CLI::App* app, WorkloadOptions* o) {
  const char* what =
      "What to move (one of --cases, --preset, --model, --collective, or --src and --dst)";
  InlineFlags* in = &o->inline_flags;
  AddFlags(
      app,
      FlagGroups{
          {what,
           {{"--cases", &o->cases_file,
             "case file: JSON, which docs/layouts.md describes; or recipes, which comes with the "
             "program"},
            {"--preset", &o->preset,
             "etha-N-no_partial, -replicate_dp or -partial_dp, N = 1..8: cases of published "
             "comparisons, each from ranks 0-7 to ranks 8-15, so they take 16 ranks"},
            {"--list-presets", &o->list_presets, "print them with their layouts, and end"},
            {"--model", &o->model_file,
             "model file: {name: {shape, dtype}}; or the name of one in share/sluice/models, e.g. "
             "llama-3-8b"},
            {"--system", &o->system_file,
             "system file: {train, generation}, which says how many ranks it takes; or the name of "
             "one in share/sluice/systems, e.g. llama-3-8b-fsdp4-tp2dp2 (bench/systems)"},
            {"--layers", &o->cut.layers, "keep the first N layers of the model"},
            {"--scale", &o->cut.scale, "divide the dimensions of the model by K"},
            {"--replicas", &o->replicas,
             "so many times the data-parallel ranks of the system, on both sides; a list makes a "
             "case of each, e.g. 1,16 [1]"},
            {"--shape", &in->shape, "tensor shape, e.g. 4096,4096"},
            {"-d,--dtype", &in->dtype,
             "element type, e.g. bf16, or float as nccl-tests has it [f32]"},
            {"--ranks", &in->ranks, "of --collective: how many [all of the job]",
             Within(1, 1 << 17)},
            {"--src", &in->src,
             "source layout, MESH@RANKS:PLACEMENTS, e.g. 2,4@0-7:R,S(0); without @RANKS on ranks "
             "from 0 on; mesh dimensions are visited left to right, or in an order that follows: "
             "2,4:S(0),S(0):1,0"},
            {"--dst", &in->dst, "target layout, likewise: without @RANKS on ranks from 0 on, too"},
            {"--disjoint", &in->disjoint,
             "ranks of such a --dst begin after the last one of the source"},
            {"--src-mesh", &in->src_parts.mesh,
             "in place of --src, with the next two: source mesh, e.g. 2,2"},
            {"--src-ranks", &in->src_parts.ranks, "source ranks, e.g. 0-3 or 0,2,1,3"},
            {"--src-placements", &in->src_parts.placements, "e.g. 'R,S(0)'"},
            {"--dst-mesh", &in->dst_parts.mesh,
             "in place of --dst, with the next two: target mesh"},
            {"--dst-ranks", &in->dst_parts.ranks, "target ranks"},
            {"--dst-placements", &in->dst_parts.placements, "e.g. 'S(1)' or 'SS(0,2),S(0)'"},
            {"-b,--minbytes", &in->begin_bytes, "sweep the first dimension from this size"},
            {"-e,--maxbytes", &in->end_bytes, "to this size [as -b]"},
            {"-f,--stepfactor", &in->factor, "multiplying by this [2]"},
            {"-i,--stepbytes", &in->step, "or adding so many bytes, in place of -f"}}}});
  app->add_option("--tensors", o->tensors, "tensors of a preset [2], or of one --shape [1]")
      ->group(what);
  app->add_option("--collective", in->collective,
                  absl::StrCat("layouts of ", absl::StrJoin(CollectiveNames(), ", "),
                               " over the first --ranks ranks; rank 0 is the root; --shape is of "
                               "all parts together [about 4M elements]"))
      ->group(what);
}

}  // namespace sluice::bench
