-- staged lines → results. The row of the latest segment stays.
create or replace temp table incoming as
select r.*, segment_id, position from (
  select segment_id, position, json_transform(row_json, '{
    "outcome": "VARCHAR", "run_id": "VARCHAR", "case_id": "VARCHAR", "repeat": "INTEGER", "origin": "VARCHAR",
    "turns": ["VARCHAR"], "visible_text": "VARCHAR",
    "wire": {"text": "VARCHAR", "app_latency_ms": "DOUBLE"},
    "graded_channel": "VARCHAR", "asked_at": "TIMESTAMPTZ",
    "timings": {"first_token_ms": "DOUBLE", "total_ms": "DOUBLE"},
    "app_path": "VARCHAR", "app_version": "VARCHAR",
    "evidence": {"screenshot": "VARCHAR", "trace": "VARCHAR"},
    "failed_attempts": ["JSON"], "concurrency": "INTEGER",
    "reason": "VARCHAR", "blame": "VARCHAR", "detail": "VARCHAR", "partial_text": "VARCHAR"
  }') as r
  from staged where table_name = 'results'
);

delete from incoming i using (
  select run_id, case_id, repeat, max((segment_id, position)) as last
  from incoming group by run_id, case_id, repeat having count(*) > 1
) d
where i.run_id = d.run_id and i.case_id = d.case_id and i.repeat = d.repeat and (i.segment_id, i.position) <> d.last;

delete from incoming i using results t
where t.run_id = i.run_id and t.case_id = i.case_id and t.repeat = i.repeat and t.segment_id > i.segment_id;

delete from results t using incoming i
where t.run_id = i.run_id and t.case_id = i.case_id and t.repeat = i.repeat;

insert into results by name
select
  run_id, case_id, repeat, outcome, origin, asked_at, turns, visible_text, wire.text as wire_text, graded_channel,
  app_path, app_version, timings.first_token_ms as first_token_ms, timings.total_ms as total_ms,
  wire.app_latency_ms as app_latency_ms, reason, blame, detail, partial_text,
  coalesce(len(failed_attempts), 0) as failed_attempts, concurrency,
  evidence.screenshot as screenshot, evidence.trace as trace, segment_id
from incoming;
