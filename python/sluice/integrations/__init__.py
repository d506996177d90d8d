"""Adapters by which hosts take their weights through Sluice: a module for each host.

A host finds its module by the entry points of the package, and imports it when it is asked for.
None of them is imported with `sluice`. docs/integrations.md says what works for which host.
"""
