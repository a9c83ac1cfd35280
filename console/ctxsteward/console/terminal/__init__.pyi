from . import tables as tables
from .failures import (
    BLOCKED as BLOCKED,
    CONSOLE as CONSOLE,
    FLOWS as FLOWS,
    FOUND as FOUND,
    ROLLED_BACK as ROLLED_BACK,
    S3 as S3,
    STEWARD as STEWARD,
    Package as Package,
    failure_line as failure_line,
    installed as installed,
    missing as missing,
    need as need,
    one_line as one_line,
    report_failure as report_failure,
    visible as visible,
)
from .options import (
    DEFAULT_MODEL as DEFAULT_MODEL,
    DEFAULT_STORE as DEFAULT_STORE,
    budget_option as budget_option,
    building as building,
    common as common,
    completer as completer,
    model_option as model_option,
    of_whole_store as of_whole_store,
    provider as provider,
    read_budgets as read_budgets,
    read_builder as read_builder,
    read_input as read_input,
    read_profile as read_profile,
    read_provider as read_provider,
    telemetry as telemetry,
    unknown_model as unknown_model,
    utc_now as utc_now,
)
from .output import (
    note as note,
    print_document as print_document,
    print_json as print_json,
    print_result as print_result,
    progress as progress,
    table_console as table_console,
    unicode_console as unicode_console,
)
from .stores import (
    JOURNAL_VARIABLE as JOURNAL_VARIABLE,
    check_tenant as check_tenant,
    envelope_address as envelope_address,
    is_address as is_address,
    open_stored as open_stored,
    open_uri as open_uri,
    stored_session as stored_session,
)
from .tables import grid as grid, shown as shown
from .transcripts import (
    append_missing as append_missing,
    choose_transcript as choose_transcript,
    open_session as open_session,
    read_file as read_file,
    unused_id as unused_id,
)
