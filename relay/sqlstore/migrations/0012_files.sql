-- Files that can be opened: each names its content.
CREATE TABLE file (
  name TEXT NOT NULL PRIMARY KEY, content BIGINT NOT NULL, size BIGINT NOT NULL, expires BIGINT NOT NULL
);
CREATE INDEX file_expires ON file (expires) WHERE expires > 0;

-- Contents: of files, of files that are being written, and of those that were
-- replaced or whose writer died. The last ones expire soon.
CREATE TABLE file_content (id {serial}, expires BIGINT NOT NULL);
CREATE INDEX file_content_expires ON file_content (expires) WHERE expires > 0;

-- Contents in pieces. What is kept is mostly compressed.
CREATE TABLE file_chunk (
  content BIGINT NOT NULL, idx BIGINT NOT NULL, bytes BYTEA NOT NULL,
  PRIMARY KEY (content, idx)
);
ALTER TABLE file_chunk ALTER COLUMN bytes SET STORAGE EXTERNAL; -- only postgresql
