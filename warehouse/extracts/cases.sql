-- staged lines → cases. Suites with the same hash have the same cases. The row of the earliest segment stays.
create or replace temp table incoming as
select
  r.suite_sha256 as suite_sha256, r.suite_name as suite_name, r.case.id as case_id, r.case.turns as turns,
  r.case.gold as gold, r.case.expected_refusal as expected_refusal, r.case.severity as severity,
  r.case.language as language, r.case.type as type, r.case.provenance.pipeline as pipeline,
  r.case.cluster as cluster, r.case.pair as pair, row_json->'case' as record, segment_id, position
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
);

insert or replace into cases by name
select * exclude (position) from incoming i
where not exists (
  select 1 from cases t where t.suite_sha256 = i.suite_sha256 and t.case_id = i.case_id and t.segment_id < i.segment_id
)
qualify row_number() over (partition by i.suite_sha256, i.case_id order by i.segment_id, i.position) = 1;
