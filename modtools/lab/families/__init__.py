"""The task families, one a file; each states why its count of calls is the least possible."""

from __future__ import annotations

from modtools.lab.families import (
    add_function,
    change_condition,
    count_and_record,
    fix_bug,
    move_constant,
    rename,
    set_value,
    update_callers,
)

FAMILIES = {
    family.name: family
    for family in (
        set_value.FAMILY,
        rename.FAMILY,
        update_callers.FAMILY,
        fix_bug.FAMILY,
        add_function.FAMILY,
        change_condition.FAMILY,
        count_and_record.FAMILY,
        move_constant.FAMILY,
    )
}

# No model of the kit is taught this family; what it is made of, the others teach.
HELD_OUT = "move_constant"
