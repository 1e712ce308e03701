-- In which numbering of processes the number of a process counts: containers on one machine have their own. Empty where it is not known,
-- and then nothing is concluded from the number.
ALTER TABLE instances ADD COLUMN space TEXT NOT NULL DEFAULT '';
