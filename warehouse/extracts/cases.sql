-- staged lines → cases. A suite's hash covers its cases, so that two of one hash say the same.
insert into cases by name
select
  r.suite_sha256 as suite_sha256, r.suite_name as suite_name, r.case.id as case_id, r.case.turns as turns,
  r.case.gold as gold, r.case.expected_refusal as expected_refusal, r.case.severity as severity,
  r.case.language as language, r.case.type as type, r.case.provenance.pipeline as pipeline,
  r.case.cluster as cluster, r.case.pair as pair, row_json->'case' as record, segment_id
from (
  select segment_id, position, row_json, json_transform(row_json, '{
    "suite_sha256": "VARCHAR", "suite_name": "VARCHAR",
    "case": {
      "id": "VARCHAR", "turns": ["VARCHAR"], "gold": "VARCHAR", "expected_refusal": "BOOLEAN",
      "severity": "TINYINT", "language": "VARCHAR", "type": "VARCHAR", "provenance": {"pipeline": "VARCHAR"},
      "cluster": "VARCHAR", "pair": "VARCHAR"
    }
  }') as r
  from staged where table_name = 'cases'
)
order by segment_id, position
on conflict do nothing;
