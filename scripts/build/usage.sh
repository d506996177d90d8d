# Sourced by scripts whose heads say how they are used.

# show_usage SCRIPT ARGUMENT...: where --help or -h is an argument, prints the head of SCRIPT from
# its usage on, and ends.
show_usage() {
  local script=$1
  shift
  case " $* " in
    *' --help '* | *' -h '*)
      sed -n '/^# usage/,/^$/{s/^# \{0,1\}//;p}' "$script" | sed '/^set /,$d'
      exit 0 ;;
  esac
}
