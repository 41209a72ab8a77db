-- Staged lines without personal data: texts are emptied, ids of real conversations become pseudonyms.
create or replace temp table staged as
select
  segment_id, position, table_name,
  case
    when table_name = 'results' then json_merge_patch(
      row_json,
      case when row_json->>'outcome' = 'exchange'
        then '{"turns": [], "earlier_answers": [], "visible_text": "", "evidence": null}'::json
        else '{"turns": [], "detail": "", "partial_text": "", "evidence": null}'::json
      end,
      case when row_json->>'$.wire.text' is not null
        then '{"wire": {"text": "", "citations": [], "document_versions": null}}'::json else '{}'::json
      end,
      json_object('failed_attempts', to_json(list_transform(
        coalesce((row_json->'failed_attempts')::json[], []), lambda x: json_merge_patch(x, '{"detail": ""}')
      ))),
      case when row_json->>'run_id' in (select run_id from real_traffic)
        then json_object('case_id', pseudonym(row_json->>'case_id')) else '{}'::json
      end
    )
    when table_name = 'hallucinations' then json_merge_patch(
      row_json,
      '{"entry": {"reply": {"user_text": "", "blocked_reply": "", "unsupported_claims": [], "extra": null}}}'::json
    )
    when table_name = 'conversations' and row_json->>'$.sampled.conversation.id' is not null then json_merge_patch(
      row_json,
      '{"sampled": {"conversation": {"origin_id": "", "user_key": null, "app_version": null}}}'::json,
      '{"sampled": {"conversation": {"turns": [{"user_text": "", "reply_text": ""}]}}}'::json,
      json_object('sampled', json_object('conversation', json_object('id', row_json->>'id')))
    )
    when table_name in ('assessments', 'labels') and row_json->>'run_id' in (select run_id from real_traffic)
      then json_merge_patch(row_json, json_object('case_id', pseudonym(row_json->>'case_id')))
    when table_name = 'case_drafts' and row_json->>'run_id' in (select run_id from real_traffic)
      then json_merge_patch(row_json, json_object('source_id', pseudonym(row_json->>'source_id')))
    when table_name = 'incidents' and row_json->>'$.incident.last_run_id' in (select run_id from real_traffic)
      then json_merge_patch(row_json, json_object(
        'incident', json_object('case_id', pseudonym(row_json->>'$.incident.case_id'))
      ))
    when table_name = 'alerts' and row_json->>'run_id' in (select run_id from real_traffic)
      then json_merge_patch(row_json, json_object('items', to_json(list_transform(
        (row_json->'items')::json[], lambda x: json_merge_patch(x, json_object(
          'incident', json_object('case_id', pseudonym(x->>'$.incident.case_id')),
          'observation', json_object('case_id', pseudonym(x->>'$.observation.case_id'))
        ))
      ))))
    else row_json
  end as row_json
from staged
order by segment_id, position;
