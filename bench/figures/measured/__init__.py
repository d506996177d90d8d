"""What scripts/measure.sh runs: each module measures one file of build/results."""
