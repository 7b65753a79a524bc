-- Repositories that a principal's runs may work on, as a list of addresses and beginnings of addresses; all that its account
-- may use, if absent.

ALTER TABLE principals ADD COLUMN repositories TEXT;
