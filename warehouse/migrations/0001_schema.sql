-- The first schema: every table of the warehouse, each with what it is.

comment on table lookout_migrations is 'Which steps of the schema this file has; a newer step than the code knows is refused.';
comment on column lookout_migrations.number is 'The step.';
comment on column lookout_migrations.name is 'Its name.';
comment on column lookout_migrations.sha256 is 'SHA-256 of its statements as they were applied.';
comment on column lookout_migrations.applied_at is 'When it was applied (UTC).';

create table view_set (sha256 varchar not null);
comment on table view_set is 'Which version of the views this file has; renewed when the code brings others.';
comment on column view_set.sha256 is 'SHA-256 of the views'' definitions.';

create table segments (
  id varchar primary key,
  name varchar not null,
  run_id varchar,
  rows json not null,
  sha256 varchar not null,
  size_bytes bigint not null,
  loaded_at timestamptz not null
);
comment on table segments is 'Journal segments that are loaded, each written in the transaction that loaded its rows.';
comment on column segments.id is 'Segment id; sorts by the time of writing.';
comment on column segments.name is 'Folder and file name inside the journal.';
comment on column segments.run_id is 'The run that wrote it, if one did.';
comment on column segments.rows is 'How many rows of which table it holds, as JSON.';
comment on column segments.sha256 is 'SHA-256 over its rows, as in its header.';
comment on column segments.size_bytes is 'Size of the file in bytes.';
comment on column segments.loaded_at is 'When it was loaded (UTC).';

create table results (
  run_id varchar not null,
  case_id varchar not null,
  repeat integer not null,
  outcome varchar not null,
  origin varchar not null,
  asked_at timestamptz not null,
  turns varchar[],
  visible_text varchar,
  wire_text varchar,
  graded_channel varchar,
  app_path varchar,
  app_version varchar,
  first_token_ms double,
  total_ms double,
  app_latency_ms double,
  reason varchar,
  blame varchar,
  detail varchar,
  partial_text varchar,
  failed_attempts integer not null,
  concurrency integer not null,
  screenshot varchar,
  trace varchar,
  segment_id varchar not null,
  primary key (run_id, case_id, repeat)
);
comment on table results is 'What came back for each case of each run: an answer, or why there was none.';
comment on column results.run_id is 'The run.';
comment on column results.case_id is 'The gold case, or the item of traffic.';
comment on column results.repeat is 'Counts from 0 when a case is asked several times.';
comment on column results.outcome is 'exchange: an answer came; no_answer: nothing gradable came.';
comment on column results.origin is 'Who asked: probe, traffic or log.';
comment on column results.asked_at is 'When the question was sent (UTC).';
comment on column results.turns is 'The user''s messages in order; the last one''s answer is graded.';
comment on column results.visible_text is 'What the user saw.';
comment on column results.wire_text is 'What the app sent, where it was captured.';
comment on column results.graded_channel is 'Which of the two texts was graded: visible or wire.';
comment on column results.app_path is 'The model or path that answered, when the app says so.';
comment on column results.app_version is 'The commit or version that answered, when the app says so.';
comment on column results.first_token_ms is 'Milliseconds from sending to the first text.';
comment on column results.total_ms is 'Milliseconds from sending to the end of the answer.';
comment on column results.app_latency_ms is 'Milliseconds that the app itself reported.';
comment on column results.reason is 'Why there was no answer.';
comment on column results.blame is 'Whose fault a missing answer is: app, monitor or provider.';
comment on column results.detail is 'The missing answer''s reason in words.';
comment on column results.partial_text is 'What had come before it broke off.';
comment on column results.failed_attempts is 'Tries that gave nothing before this outcome.';
comment on column results.concurrency is 'Questions under way at once when it was asked.';
comment on column results.screenshot is 'Path of the screenshot inside the run''s folder.';
comment on column results.trace is 'Path of the browser trace inside the run''s folder.';
comment on column results.segment_id is 'The segment it came from.';

create table assessments (
  run_id varchar not null,
  case_id varchar not null,
  repeat integer not null,
  outcome varchar not null,
  failure_kinds varchar[] not null,
  case_severity tinyint not null,
  severity tinyint not null,
  policy_row varchar not null,
  blame varchar,
  reason varchar not null,
  factual_match varchar not null,
  citation_present varchar not null,
  refused varchar not null,
  expected_refusal boolean not null,
  type varchar not null,
  language varchar not null,
  cluster varchar,
  pair varchar,
  app_path varchar,
  unconfirmed boolean not null,
  segment_id varchar not null,
  primary key (run_id, case_id, repeat)
);
comment on table assessments is 'What each case of each run came to, with its severity.';
comment on column assessments.run_id is 'The run.';
comment on column assessments.case_id is 'The gold case, or the item of traffic.';
comment on column assessments.repeat is 'Counts from 0 when a case is asked several times.';
comment on column assessments.outcome is 'correct, failed, no_answer or ungraded (no grader could decide).';
comment on column assessments.failure_kinds is 'All that was found wrong, worst first.';
comment on column assessments.case_severity is 'The case''s own severity: 1 minor, 2 major, 3 critical (alerts at once).';
comment on column assessments.severity is 'The failure''s severity when it failed, else the case''s.';
comment on column assessments.policy_row is 'The row of the severity policy that decided.';
comment on column assessments.blame is 'Whose fault it is: app, monitor or provider. Null when the case was correct.';
comment on column assessments.reason is 'The outcome in one sentence.';
comment on column assessments.factual_match is 'Does it say what the gold says: yes, no or ungraded.';
comment on column assessments.citation_present is 'Does it name its source: yes, no or ungraded.';
comment on column assessments.refused is 'Did it refuse, rightly or not: yes, no or ungraded.';
comment on column assessments.expected_refusal is 'Whether the case expects a refusal.';
comment on column assessments.type is 'The case''s type, such as waiting_period.';
comment on column assessments.language is 'The case''s language: en, hi, hinglish or other.';
comment on column assessments.cluster is 'What related cases share, such as a policy.';
comment on column assessments.pair is 'Joins the translations of one question.';
comment on column assessments.app_path is 'The model or path that answered, when the app says so.';
comment on column assessments.unconfirmed is 'A severity-3 finding that rests on one judge alone.';
comment on column assessments.segment_id is 'The segment it came from.';

create table grades (
  run_id varchar not null,
  case_id varchar not null,
  repeat integer not null,
  position integer not null,
  grader varchar not null,
  version varchar not null,
  aspect varchar not null,
  status varchar not null,
  passed boolean,
  failure_kind varchar,
  score double,
  reason varchar not null,
  blame varchar,
  judge_model varchar,
  judge_prompt_sha256 varchar,
  rubric_version varchar,
  cost_usd decimal(18, 9) not null,
  evidence json,
  plain_passed boolean
);
comment on table grades is 'Every grader''s verdict, one row each. Without a key of its own: it follows its assessment.';
comment on column grades.run_id is 'The run.';
comment on column grades.case_id is 'The gold case, or the item of traffic.';
comment on column grades.repeat is 'Counts from 0 when a case is asked several times.';
comment on column grades.position is 'Place among the assessment''s grades, from 0.';
comment on column grades.grader is 'The grader.';
comment on column grades.version is 'The grader''s version.';
comment on column grades.aspect is 'The question that it answers, such as factual_match or disclosure.';
comment on column grades.status is 'judged, or abstained when it had nothing to go on.';
comment on column grades.passed is 'The verdict; null when it abstained.';
comment on column grades.failure_kind is 'What is wrong; null when nothing is.';
comment on column grades.score is 'A finer verdict in [0, 1], where the grader has one.';
comment on column grades.reason is 'One sentence that a person can check.';
comment on column grades.blame is 'Whose fault an abstention is.';
comment on column grades.judge_model is 'The judging model, for a judge''s grade.';
comment on column grades.judge_prompt_sha256 is 'Hash of the judge''s prompt.';
comment on column grades.rubric_version is 'Version of the judge''s rubric.';
comment on column grades.cost_usd is 'What the grade cost, in US dollars.';
comment on column grades.evidence is 'Where the evidence stands (spans with labels, never the text), as JSON.';
comment on column grades.plain_passed is 'Beside a judge''s grade: whether all graders without a model that gave a verdict passed it on the same question.';

create table runs (
  run_id varchar primary key,
  target varchar not null,
  environment varchar not null,
  suite_name varchar not null,
  suite_sha256 varchar not null,
  commit varchar,
  started_at timestamptz not null,
  finished_at timestamptz not null,
  verdict varchar not null,
  flat_earned decimal(18, 6) not null,
  flat_total decimal(18, 6) not null,
  weighted_earned decimal(18, 6) not null,
  weighted_total decimal(18, 6) not null,
  weights_version varchar not null,
  asked integer not null,
  graded integer not null,
  coverage_floor double not null,
  answered integer,
  p50_ms double,
  p95_ms double,
  objective_p50_ms double,
  cost_usd decimal(18, 9) not null,
  interrupted boolean not null,
  resumed_cases integer not null,
  report json not null,
  segment_id varchar not null
);
comment on table runs is 'One row per run: the verdict with its arithmetic.';
comment on column runs.run_id is 'The run.';
comment on column runs.target is 'The watched application.';
comment on column runs.environment is 'staging or production.';
comment on column runs.suite_name is 'The suite that was asked.';
comment on column runs.suite_sha256 is 'The suite''s hash; scores of two hashes are not comparable.';
comment on column runs.commit is 'The deployed commit that was graded, when known.';
comment on column runs.started_at is 'When the run began (UTC).';
comment on column runs.finished_at is 'When it ended (UTC).';
comment on column runs.verdict is 'PASS, FAIL or INCONCLUSIVE.';
comment on column runs.flat_earned is 'Cases passed.';
comment on column runs.flat_total is 'Cases that count.';
comment on column runs.weighted_earned is 'Severity weight of the cases passed.';
comment on column runs.weighted_total is 'Severity weight of the cases that count.';
comment on column runs.weights_version is 'Version of the severity weights.';
comment on column runs.asked is 'Cases asked.';
comment on column runs.graded is 'Cases that a grader could grade.';
comment on column runs.coverage_floor is 'Share of graded cases below which the run is INCONCLUSIVE.';
comment on column runs.answered is 'Answers that latency was measured on.';
comment on column runs.p50_ms is 'Median of the total answer time in milliseconds.';
comment on column runs.p95_ms is '95th percentile of the total answer time in milliseconds.';
comment on column runs.objective_p50_ms is 'The target''s objective for the median in milliseconds.';
comment on column runs.cost_usd is 'What the run cost, in US dollars.';
comment on column runs.interrupted is 'Stopped before its end.';
comment on column runs.resumed_cases is 'Cases that were answered before a restart.';
comment on column runs.report is 'The whole report as JSON.';
comment on column runs.segment_id is 'The segment it came from.';

create table metrics (
  run_id varchar not null,
  name varchar not null,
  passed integer not null,
  total integer not null,
  low double not null,
  high double not null,
  target double,
  met varchar not null
);
comment on table metrics is 'A run''s metrics with their 95 % Wilson intervals. It follows runs.';
comment on column metrics.run_id is 'The run.';
comment on column metrics.name is 'The metric, such as factual_accuracy.';
comment on column metrics.passed is 'Cases that met it.';
comment on column metrics.total is 'Cases that it was measured on.';
comment on column metrics.low is 'Lower end of the interval.';
comment on column metrics.high is 'Upper end of the interval.';
comment on column metrics.target is 'The configured target, if there is one.';
comment on column metrics.met is 'Whether the target was met: yes, no or ungraded.';

create table tallies (
  run_id varchar not null,
  severity tinyint not null,
  weight decimal(18, 6) not null,
  cases integer not null,
  not_correct integer not null
);
comment on table tallies is 'A run''s arithmetic by case severity. It follows runs.';
comment on column tallies.run_id is 'The run.';
comment on column tallies.severity is 'The cases'' own severity.';
comment on column tallies.weight is 'What one case weighs.';
comment on column tallies.cases is 'Cases that count.';
comment on column tallies.not_correct is 'Cases that were not correct: a wrong answer, or none by the app''s own fault.';

create table cases (
  suite_sha256 varchar not null,
  case_id varchar not null,
  suite_name varchar not null,
  turns varchar[] not null,
  gold varchar not null,
  expected_refusal boolean not null,
  severity tinyint not null,
  language varchar not null,
  type varchar not null,
  pipeline varchar not null,
  cluster varchar,
  pair varchar,
  record json not null,
  segment_id varchar not null,
  primary key (suite_sha256, case_id)
);
comment on table cases is 'The gold cases of every suite that was ever run.';
comment on column cases.suite_sha256 is 'The suite''s hash.';
comment on column cases.case_id is 'The case.';
comment on column cases.suite_name is 'The suite''s name.';
comment on column cases.turns is 'The user''s messages in order.';
comment on column cases.gold is 'The right answer in words.';
comment on column cases.expected_refusal is 'Whether the app must refuse.';
comment on column cases.severity is 'How far a failure reaches: 1 minor, 2 major, 3 critical (alerts at once).';
comment on column cases.language is 'en, hi, hinglish or other.';
comment on column cases.type is 'The case''s type.';
comment on column cases.pipeline is 'How the case came to be.';
comment on column cases.cluster is 'What related cases share.';
comment on column cases.pair is 'Joins the translations of one question.';
comment on column cases.record is 'The whole case as JSON.';
comment on column cases.segment_id is 'The segment it came from.';

create table deploys (
  target varchar not null,
  commit varchar not null,
  occurred_at timestamptz not null,
  reported_by varchar not null,
  segment_id varchar not null,
  primary key (target, commit)
);
comment on table deploys is 'Deploys as they were reported, each commit of a target once.';
comment on column deploys.target is 'The watched application.';
comment on column deploys.commit is 'What was deployed.';
comment on column deploys.occurred_at is 'When (UTC).';
comment on column deploys.reported_by is 'Who said so.';
comment on column deploys.segment_id is 'The segment it came from.';

create table incident_history (
  sequence bigint primary key,
  fingerprint varchar not null,
  kind varchar not null,
  target varchar not null,
  state varchar not null,
  severity tinyint not null,
  title varchar not null,
  case_id varchar,
  failure_kind varchar,
  opened_at timestamptz not null,
  last_seen_at timestamptz not null,
  last_notified_at timestamptz,
  resolved_at timestamptz,
  occurrences integer not null,
  first_commit varchar,
  last_run_id varchar not null,
  record json not null,
  segment_id varchar not null
);
comment on table incident_history is 'Every state that an incident was in. The view incidents has the last of each.';
comment on column incident_history.sequence is 'Order of the decisions, whatever any clock said.';
comment on column incident_history.fingerprint is 'The same for the same fault of the same target in every run.';
comment on column incident_history.kind is 'What it is about, such as case_failure or gate_fail.';
comment on column incident_history.target is 'The watched application.';
comment on column incident_history.state is 'open, acknowledged or resolved.';
comment on column incident_history.severity is '1 minor, 2 major, 3 critical (alerts at once).';
comment on column incident_history.title is 'The incident in a few redacted words.';
comment on column incident_history.case_id is 'The gold case that shows it.';
comment on column incident_history.failure_kind is 'What is wrong.';
comment on column incident_history.opened_at is 'When it was opened (UTC).';
comment on column incident_history.last_seen_at is 'When it was last seen (UTC).';
comment on column incident_history.last_notified_at is 'When anything was last said about it (UTC).';
comment on column incident_history.resolved_at is 'When it was resolved (UTC).';
comment on column incident_history.occurrences is 'Runs that saw it since it was last opened.';
comment on column incident_history.first_commit is 'The deploy that it appeared with.';
comment on column incident_history.last_run_id is 'The run that saw it last.';
comment on column incident_history.record is 'The whole incident as JSON.';
comment on column incident_history.segment_id is 'The segment it came from.';

create table alerts (
  id varchar primary key,
  kind varchar not null,
  target varchar not null,
  run_id varchar not null,
  created_at timestamptz not null,
  severity tinyint not null,
  reason varchar not null,
  commit varchar,
  items integer not null,
  record json not null,
  segment_id varchar not null
);
comment on table alerts is 'Messages, each stored before it is sent.';
comment on column alerts.id is 'Shown in the message, so that a duplicate is recognisable.';
comment on column alerts.kind is 'What it is about.';
comment on column alerts.target is 'The watched application.';
comment on column alerts.run_id is 'The run that caused it.';
comment on column alerts.created_at is 'When it was decided (UTC).';
comment on column alerts.severity is '1 minor, 2 major, 3 critical (alerts at once).';
comment on column alerts.reason is 'Why it is sent: first_seen, worse, regressed (it was resolved and is back), reminder, recovered or open_before (Slack was set up later).';
comment on column alerts.commit is 'The deploy it is about.';
comment on column alerts.items is 'How many incidents it groups.';
comment on column alerts.record is 'The whole message as JSON.';
comment on column alerts.segment_id is 'The segment it came from.';

create table receipts (
  alert_id varchar not null,
  tried_at timestamptz not null,
  status varchar not null,
  channel varchar,
  thread varchar,
  detail varchar not null,
  segment_id varchar not null,
  primary key (alert_id, tried_at, status)
);
comment on table receipts is 'What became of each message, one row per try.';
comment on column receipts.alert_id is 'The message.';
comment on column receipts.tried_at is 'When it was tried (UTC).';
comment on column receipts.status is 'sent, printed, failed (stored for the next try) or rejected.';
comment on column receipts.channel is 'Where it went.';
comment on column receipts.thread is 'The message''s place in the channel, for replies.';
comment on column receipts.detail is 'What the service said, without addresses or tokens.';
comment on column receipts.segment_id is 'The segment it came from.';

create table leases (
  alert_id varchar primary key,
  owner varchar not null,
  claimed_at timestamptz not null,
  expires_at timestamptz not null,
  receipts integer not null
);
comment on table leases is 'Who is sending which message just now. Not in the journal: it matters for seconds.';
comment on column leases.alert_id is 'The message.';
comment on column leases.owner is 'The worker that sends it.';
comment on column leases.claimed_at is 'Since when (UTC).';
comment on column leases.expires_at is 'Until when nobody else may send it (UTC).';
comment on column leases.receipts is 'How many tries had a receipt when it was claimed; one more ends the lease.';

-- Archives whose segments are all loaded, so that a load need not read their manifests again.
create table archives (
  sha256 varchar primary key,
  segments integer not null,
  known_at timestamptz not null
);
comment on table archives is 'Parquet archives of old segments whose segments are all in the tables.';
comment on column archives.sha256 is 'SHA-256 of the Parquet file, which is also its name.';
comment on column archives.segments is 'How many segments it holds.';
comment on column archives.known_at is 'Since when the tables have all of it (UTC).';

-- What people do about incidents: clicks and commands, what came of them, labels, drafted cases, silences.
create table actions (
  id varchar primary key,
  kind varchar not null,
  done_at timestamptz not null,
  done_by varchar not null,
  via varchar not null,
  alert_id varchar,
  fingerprints varchar[] not null,
  note varchar not null,
  record json not null,
  segment_id varchar not null
);
comment on table actions is 'What people did about incidents. A click that was delivered twice is here once.';
comment on column actions.id is 'The same for the same click.';
comment on column actions.kind is 'acknowledge, false_alarm, add_to_gold or resolve.';
comment on column actions.done_at is 'When it was done (UTC).';
comment on column actions.done_by is 'Who: a Slack user id, or the name given to the command.';
comment on column actions.via is 'slack or command.';
comment on column actions.alert_id is 'The message that it was done on.';
comment on column actions.fingerprints is 'The incidents that it is about; none means all of the message.';
comment on column actions.note is 'What the person said about it.';
comment on column actions.record is 'The whole action as JSON.';
comment on column actions.segment_id is 'The segment it came from.';

create table action_outcomes (
  action_id varchar primary key,
  carried_out_at timestamptz not null,
  effect varchar not null,
  fingerprints varchar[] not null,
  text varchar not null,
  segment_id varchar not null
);
comment on table action_outcomes is 'What came of each action, decided once. An action without one is still to be carried out.';
comment on column action_outcomes.action_id is 'The action.';
comment on column action_outcomes.carried_out_at is 'When it was carried out (UTC).';
comment on column action_outcomes.effect is 'done, nothing_to_do (it was so already) or unknown (nothing here is meant).';
comment on column action_outcomes.fingerprints is 'The incidents that it was about.';
comment on column action_outcomes.text is 'What came of it in words.';
comment on column action_outcomes.segment_id is 'The segment it came from.';

create table labels (
  id varchar primary key,
  given_at timestamptz not null,
  done_by varchar not null,
  target varchar not null,
  run_id varchar not null,
  case_id varchar,
  failure_kind varchar,
  fingerprint varchar,
  finding_right boolean,
  reason varchar not null,
  note varchar not null,
  segment_id varchar not null,
  source varchar default 'alert',
  repeat integer default 0,
  answer varchar,
  inclusion_probability double
);
comment on table labels is 'People''s verdicts on findings and answers: what judges and graders are measured against.';
comment on column labels.id is 'The label.';
comment on column labels.given_at is 'When it was given (UTC).';
comment on column labels.done_by is 'Who gave it.';
comment on column labels.target is 'The watched application.';
comment on column labels.run_id is 'The run that made the finding, or that asked.';
comment on column labels.case_id is 'The gold case, or the item of traffic or of the log.';
comment on column labels.failure_kind is 'What was said to be wrong.';
comment on column labels.fingerprint is 'The incident that it was part of.';
comment on column labels.finding_right is 'Whether a finding in an alert was right; false for a false alarm. Null for an answer under review.';
comment on column labels.reason is 'What the grader had said.';
comment on column labels.note is 'What the person said.';
comment on column labels.segment_id is 'The segment it came from.';
comment on column labels.source is 'alert: about a finding in an alert; review: about an answer sampled for review.';
comment on column labels.repeat is 'Which answer to the case, from 0.';
comment on column labels.answer is 'What the person says of the answer: right, wrong or unsure. Null for a finding.';
comment on column labels.inclusion_probability is 'How likely the answer was to be sampled for review: weight it by one over this.';

create table case_drafts (
  id varchar primary key,
  made_at timestamptz not null,
  done_by varchar not null,
  target varchar not null,
  run_id varchar not null,
  fingerprint varchar,
  origin varchar not null,
  turns varchar[] not null,
  gold varchar,
  bad_reply varchar,
  failure_kind varchar,
  suggested_severity tinyint not null,
  severity_reason varchar not null,
  record json not null,
  segment_id varchar not null
);
comment on table case_drafts is 'Proposed cases, redacted. Nothing here is gold before a person has reviewed it.';
comment on column case_drafts.id is 'The draft.';
comment on column case_drafts.made_at is 'When it was drafted (UTC).';
comment on column case_drafts.done_by is 'Who wants it.';
comment on column case_drafts.target is 'The watched application.';
comment on column case_drafts.run_id is 'The run that brought it up.';
comment on column case_drafts.fingerprint is 'The incident that it was part of. Null for a draft of a trace or of a review.';
comment on column case_drafts.origin is 'Who asked: probe, traffic or log.';
comment on column case_drafts.turns is 'The user''s messages, redacted.';
comment on column case_drafts.gold is 'The right answer, where one is known.';
comment on column case_drafts.bad_reply is 'What the application said, redacted: the case must fail on it.';
comment on column case_drafts.failure_kind is 'What was wrong with it.';
comment on column case_drafts.suggested_severity is '1 minor, 2 major, 3 critical (alerts at once): a proposal.';
comment on column case_drafts.severity_reason is 'Why this severity is proposed.';
comment on column case_drafts.record is 'The whole draft as JSON.';
comment on column case_drafts.segment_id is 'The segment it came from.';

create table silences (
  id varchar primary key,
  author varchar not null,
  comment varchar not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  fingerprint varchar,
  target varchar,
  kind varchar,
  case_id varchar,
  failure_kind varchar,
  ended_by varchar,
  record json not null,
  segment_id varchar not null
);
comment on table silences is 'Who asked for quiet about what, why, and until when.';
comment on column silences.id is 'The silence.';
comment on column silences.author is 'Who asked for it.';
comment on column silences.comment is 'Why.';
comment on column silences.starts_at is 'From when (UTC).';
comment on column silences.ends_at is 'Until when (UTC); a silence always ends.';
comment on column silences.fingerprint is 'Only this incident, where it is set.';
comment on column silences.target is 'Only this application, where it is set.';
comment on column silences.kind is 'Only incidents of this kind, where it is set.';
comment on column silences.case_id is 'Only this case, where it is set.';
comment on column silences.failure_kind is 'Only what is wrong in this way, where it is set.';
comment on column silences.ended_by is 'Who ended it before its time.';
comment on column silences.record is 'The whole silence as JSON.';
comment on column silences.segment_id is 'The segment it came from.';

-- The application's hallucination log: entries, lines that are none, what befell the log, where reading stands.
create table hallucinations (
  log varchar not null,
  id varchar not null,
  target varchar not null,
  fingerprint varchar not null,
  logged_at timestamptz,
  read_at timestamptz not null,
  notify boolean not null,
  user_text varchar,
  blocked_reply varchar,
  reasons varchar[] not null,
  unsupported_claims varchar[] not null,
  chunk_count integer,
  top_score double,
  policy_ids varchar[] not null,
  record json not null,
  segment_id varchar not null,
  primary key (log, id)
);
comment on table hallucinations is 'Replies that the application held back, as its own log says, each line once.';
comment on column hallucinations.log is 'The log that it stands in.';
comment on column hallucinations.id is 'Its place in the log: how often the log had started again, byte, digest of the line.';
comment on column hallucinations.target is 'The application.';
comment on column hallucinations.fingerprint is 'The incident that tells of it.';
comment on column hallucinations.logged_at is 'When the application wrote it (UTC), if it says so.';
comment on column hallucinations.read_at is 'When it was read (UTC).';
comment on column hallucinations.notify is 'Whether to notify people: not for what stood there before watching began.';
comment on column hallucinations.user_text is 'What was asked, redacted.';
comment on column hallucinations.blocked_reply is 'What would have been answered, redacted.';
comment on column hallucinations.reasons is 'Which of the application''s checks failed.';
comment on column hallucinations.unsupported_claims is 'Claims that nothing supports, redacted.';
comment on column hallucinations.chunk_count is 'How many pieces of documents had been found.';
comment on column hallucinations.top_score is 'The best piece''s score, 0 to 1.';
comment on column hallucinations.policy_ids is 'Documents that it was about.';
comment on column hallucinations.record is 'The whole entry as JSON, redacted; fields that the format does not know are in it.';
comment on column hallucinations.segment_id is 'The segment it came from.';

create table quarantined_lines (
  log varchar not null,
  id varchar not null,
  generation integer not null,
  byte_offset bigint not null,
  length bigint not null,
  sha256 varchar not null,
  reason varchar not null,
  detail varchar not null,
  segment_id varchar not null,
  primary key (log, id)
);
comment on table quarantined_lines is 'Lines of a log that are not entries; their text is not stored.';
comment on column quarantined_lines.log is 'The log.';
comment on column quarantined_lines.id is 'Its place in the log, as for an entry.';
comment on column quarantined_lines.generation is 'How often the log had started again, as after a rotation.';
comment on column quarantined_lines.byte_offset is 'Where the line starts, in bytes.';
comment on column quarantined_lines.length is 'Bytes of the line.';
comment on column quarantined_lines.sha256 is 'Digest of the line, to find it in a copy of the log.';
comment on column quarantined_lines.reason is 'too_long, not_utf8, not_json or not_an_object.';
comment on column quarantined_lines.detail is 'The reason in words.';
comment on column quarantined_lines.segment_id is 'The segment it came from.';

create table log_cursors (
  log varchar not null,
  sequence bigint not null,
  generation integer not null,
  byte_offset bigint not null,
  record json not null,
  segment_id varchar not null,
  primary key (log, sequence)
);
comment on table log_cursors is 'Where reading of each log stood, written in one segment with what had been read.';
comment on column log_cursors.log is 'The log.';
comment on column log_cursors.sequence is 'Counts the steps of reading; the largest is where reading stands.';
comment on column log_cursors.generation is 'How often the log had started again, as after a rotation.';
comment on column log_cursors.byte_offset is 'Read up to here, in bytes of the newest file.';
comment on column log_cursors.record is 'The whole cursor as JSON.';
comment on column log_cursors.segment_id is 'The segment it came from.';

-- Live traffic: which conversations were taken, once each, and what every night came to.
create table conversations (
  target varchar not null,
  source varchar not null,
  id varchar not null,
  run_id varchar not null,
  completed_at timestamptz not null,
  stratum varchar not null,
  inclusion_probability double,
  record json,
  segment_id varchar not null,
  primary key (target, source, id)
);
comment on table conversations is 'Conversations of real users that a nightly run counted, each once; texts, protected, only of the sampled ones.';
comment on column conversations.target is 'The application.';
comment on column conversations.source is 'Where it was read from.';
comment on column conversations.id is 'The source''s id; one that tells of a person is replaced by a digest before it is stored.';
comment on column conversations.run_id is 'The night that took it.';
comment on column conversations.completed_at is 'When it ended (UTC), as the source says.';
comment on column conversations.stratum is 'The stratum that it was counted in.';
comment on column conversations.inclusion_probability is 'How likely it was to be sampled: weight it by one over this. Null where it was not sampled.';
comment on column conversations.record is 'The sampled conversation as JSON, protected as its source''s settings say. Null where it was not sampled, and once its texts have aged out.';
comment on column conversations.segment_id is 'The segment it came from.';

create table nightly_runs (
  run_id varchar primary key,
  target varchar not null,
  due_at timestamptz not null,
  since timestamptz not null,
  until timestamptz not null,
  finished_at timestamptz not null,
  "read" integer not null,
  known integer not null,
  conversations integer not null,
  sampled integer not null,
  graded integer not null,
  severe_rate double,
  severe_low double,
  severe_high double,
  failed_rate double,
  failed_low double,
  failed_high double,
  confidence double,
  cost_usd decimal(18, 9) not null,
  graded_by varchar not null,
  drifted boolean,
  record json not null,
  segment_id varchar not null
);
comment on table nightly_runs is 'What each night of live traffic came to. A resumed night replaces its earlier report.';
comment on column nightly_runs.run_id is 'The run of the night.';
comment on column nightly_runs.target is 'The application.';
comment on column nightly_runs.due_at is 'When the run was due (UTC); it identifies and orders the nightly runs of a target.';
comment on column nightly_runs.since is 'Conversations that were completed from here on (UTC) were looked for.';
comment on column nightly_runs.until is 'Up to here (UTC).';
comment on column nightly_runs.finished_at is 'When the night''s work was done (UTC).';
comment on column nightly_runs."read" is 'Conversations that were new.';
comment on column nightly_runs.known is 'Conversations that an earlier night had taken.';
comment on column nightly_runs.conversations is 'Conversations that the rates speak of.';
comment on column nightly_runs.sampled is 'How many of them were sampled.';
comment on column nightly_runs.graded is 'How many of the sampled ones got a verdict.';
comment on column nightly_runs.severe_rate is 'Share of all conversations with a failure of severity 3, 0 to 1. Null when none was graded.';
comment on column nightly_runs.severe_low is 'Lower limit of that share.';
comment on column nightly_runs.severe_high is 'Upper limit of that share.';
comment on column nightly_runs.failed_rate is 'Share of all conversations with any failure that was found, 0 to 1. Null when none was graded.';
comment on column nightly_runs.failed_low is 'Lower limit of that share.';
comment on column nightly_runs.failed_high is 'Upper limit of that share.';
comment on column nightly_runs.confidence is 'How often such intervals hold the true share, 0 to 1. Null when none was graded.';
comment on column nightly_runs.cost_usd is 'What judging cost.';
comment on column nightly_runs.graded_by is 'What graded: rates by another judge cannot be compared with these.';
comment on column nightly_runs.drifted is 'Whether the severity-3 rate is another than before, by a test made to be looked at every night. Null when it was not tested.';
comment on column nightly_runs.record is 'The whole report as JSON.';
comment on column nightly_runs.segment_id is 'The segment it came from.';

create table draft_outcomes (
  draft_id varchar primary key,
  decided_at timestamptz not null,
  done_by varchar not null,
  joined boolean not null,
  case_id varchar,
  suite varchar not null,
  note varchar not null,
  record json not null,
  segment_id varchar not null
);
comment on table draft_outcomes is 'What a person made of a drafted case. A draft without an outcome waits.';
comment on column draft_outcomes.draft_id is 'The draft.';
comment on column draft_outcomes.decided_at is 'When (UTC).';
comment on column draft_outcomes.done_by is 'Who decided.';
comment on column draft_outcomes.joined is 'Whether it became gold.';
comment on column draft_outcomes.case_id is 'The gold case that it became. Null where it was not wanted.';
comment on column draft_outcomes.suite is 'The suite that the case joined.';
comment on column draft_outcomes.note is 'What the person said.';
comment on column draft_outcomes.record is 'The whole outcome as JSON.';
comment on column draft_outcomes.segment_id is 'The segment it came from.';
