-- How useful a report is, from 1 to 5: what a judge says of it, and what people say.
alter table grades add column rubric tinyint;
comment on column grades.rubric is 'How useful a judge finds a report, from 1 to 5; null for every other grade, and for those loaded before it was stored: lookout warehouse rebuild fills them in.';

alter table labels add column rating tinyint;
comment on column labels.rating is 'How useful the person finds a report, from 1 to 5; null where it is none, or was not rated.';
