-- The number is taken by another change; nothing is done here.
SELECT 1;
