-- People also say of answers that were drawn for review whether they are right.

alter table labels alter column finding_right drop not null;
alter table labels add column source varchar default 'alert';
alter table labels add column repeat integer default 0;
alter table labels add column answer varchar;
alter table labels add column inclusion_probability double;
comment on table labels is 'People''s verdicts on findings and answers: what judges and graders are measured against.';
comment on column labels.run_id is 'The run that made the finding, or that asked.';
comment on column labels.finding_right is 'Whether a finding that was told was right; false for a false alarm. Null for an answer under review.';
comment on column labels.source is 'alert: about a finding that was told; review: about an answer that was drawn for review.';
comment on column labels.repeat is 'Which answer to the case, from 0.';
comment on column labels.answer is 'What the person says of the answer: right, wrong or unsure. Null for a finding.';
comment on column labels.inclusion_probability is 'How likely the answer was to be drawn for review: weigh it by one over this.';
