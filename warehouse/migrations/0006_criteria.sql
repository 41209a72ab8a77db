-- Helpfulness, completeness and accuracy of a report: a judge's answers beside its rating.
alter table grades add column criteria json;
comment on column grades.criteria is 'A judge''s answers to the three criteria of a report: name, score of 0 or 1, reason, and where the quote stands (never the text), as JSON. Null for every other grade, where they were not rated, and for those loaded before they were stored: lookout warehouse rebuild fills them in.';
