#!/usr/bin/env python3
"""Writes what completes a program's commands, options and values in bash, out of its --help.

  make_completion.py PROGRAM FILE
"""
import pathlib
import re
import subprocess
import sys

import help_page

# Options whose values are names of files below share/sluice, or any file.
SHIPPED = {"--model": "models", "--system": "systems", "--cases": "cases"}

SCRIPT = r"""# Completes {name} in bash. Made out of its --help.

# Files of share/sluice/$1, beside the program's own folder, that begin with $2.
{function}_shipped() {{
  local program
  program=$(readlink -f -- "$(command -v -- "${{COMP_WORDS[0]}}")")
  compgen -W "$(cd "${{program%/*/*}}/share/sluice/$1" 2>/dev/null && ls)" -- "$2" |
    sed 's/\.json$//'
}}

{function}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command= options= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
      {commands_or})
        command=${{COMP_WORDS[i]}}
        break ;;
    esac
  done
  COMPREPLY=()
  case $command:$before in
{values}
  esac
  case $command in
{options}
  esac
  if [[ -z $command && $word != -* ]]; then
    options="{commands}"
  elif [[ $word != -* ]]; then
    return  # a value: bash offers files
  fi
  COMPREPLY=($(compgen -W "$options" -- "$word"))
}}
complete -o bashdefault -o default -F {function} {name}
"""

def preset_names(program, command, page):
    """Names that --list-presets prints, where there is such an option."""
    if not any("--list-presets" in option.names for option in page.options()):
        return []
    return re.findall(r"^\s*([a-z]+-\d+-\w+)\b",
                      help_page.output_of(program, command, "--list-presets"), re.M)


def known_names(program, command, option):
    """What the program says that there is when it is asked for something that there is not."""
    words = [program, command, "--shape", "8", option, "?"]
    if option == "--dtype":
        words += ["--src", "1:R", "--dst", "1:R"]
    if command == "reshard":
        words.append("--plan-only")  # which is done without a launcher
    said = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=60).stdout
    found = re.search(r"(?:there are|known): ((?:[\w-]+,? ?)+)", said)
    return re.split(r",? ", found[1].partition(" and ")[0]) if found else []


def values_of(program, command, page):
    """{option: values} beside those that --help lists."""
    known = {"--preset": preset_names(program, command, page)}
    if command in ("reshard", "peak"):
        known["--collective"] = known_names(program, command, "--collective")
        known["--dtype"] = known_names(program, command, "--dtype")
    return known


def value_cases(function, command, page, known):
    """Branches for the values of a command's options."""
    for option in page.options():
        names = "|".join(f"{command}:{name}" for name in option.names)
        lists = [known[name] for name in option.names if known.get(name)]
        choices = lists[0] if lists else option.choices()
        shipped = [SHIPPED[name] for name in option.names if name in SHIPPED]
        if choices:
            yield (f"    {names})\n"
                   f'      COMPREPLY=($(compgen -W "{" ".join(choices)}" -- "$word"))\n'
                   "      return ;;")
        elif shipped:
            yield (f"    {names})\n"
                   f'      COMPREPLY=($({function}_shipped {shipped[0]} "$word"; '
                   'compgen -f -- "$word"))\n'
                   "      return ;;")


def completion(program):
    name = pathlib.Path(program).name
    function = "_" + name.replace("-", "_")
    main, commands = help_page.pages(program)
    values, options = [], []
    for command, page in {"": main, **commands}.items():
        values += value_cases(function, command, page, values_of(program, command, page))
        words = " ".join(each for option in page.options() for each in option.names)
        options.append(f'    "{command}") options="{words}" ;;')
    return SCRIPT.format(name=name, function=function,
                         commands=" ".join(commands), commands_or=" | ".join(commands) or "''",
                         values="\n".join(values), options="\n".join(options))


def main():
    program, path = sys.argv[1:]
    pathlib.Path(path).write_text(completion(program), encoding="utf-8")


if __name__ == "__main__":
    main()
