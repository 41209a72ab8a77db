-- German, French and Spanish are languages of their own; before, cases in them were stored as 'other'.
comment on column assessments.language is 'The case''s language: en, hi, hinglish, de, fr, es or other.';
comment on column cases.language is 'en, hi, hinglish, de, fr, es or other.';
