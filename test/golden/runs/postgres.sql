CREATE SCHEMA %;
CREATE TABLE %.room (name text PRIMARY KEY, version integer NOT NULL);
CREATE TABLE %.run (
  key        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id         text NOT NULL UNIQUE,
  agent_id   text NOT NULL,
  parent_id  text,
  fork_of    text,
  fork_seq   integer NOT NULL DEFAULT 0,
  fork_step  integer,
  format     integer NOT NULL,
  created_ms bigint NOT NULL,
  info       text NOT NULL
);
CREATE INDEX run_by_fork ON %.run (fork_of) WHERE fork_of IS NOT NULL;

-- Rewritten at every step: free space on each page allows HOT updates, which do not touch an index.
CREATE TABLE %.head (
  key            bigint PRIMARY KEY REFERENCES %.run (key),
  status         text NOT NULL,
  epoch          integer NOT NULL,
  owner          text,
  lease_until_ms bigint NOT NULL,
  seq            integer NOT NULL,
  step           integer NOT NULL,
  phase          integer NOT NULL,
  redactions     integer NOT NULL,
  input_tokens   bigint NOT NULL,
  output_tokens  bigint NOT NULL,
  updated_ms     bigint NOT NULL,
  output         text,
  error          text
) WITH (fillfactor = 50);
CREATE INDEX head_open ON %.head (status) WHERE status IN ('running', 'needs-human');

CREATE TABLE %.message (
  key   bigint NOT NULL,
  seq   integer NOT NULL,
  step  integer NOT NULL,
  phase integer NOT NULL,
  body  text NOT NULL,
  PRIMARY KEY (key, seq)
) WITH (toast_tuple_target = 8160);

CREATE TABLE %.effect (
  key            bigint NOT NULL,
  step           integer NOT NULL,
  call           integer NOT NULL,
  call_id        text NOT NULL,
  tool           text NOT NULL,
  class          text NOT NULL,
  state          text NOT NULL,
  attempts       integer NOT NULL,
  prepared_ms    bigint NOT NULL,
  started_ms     bigint,
  ended_ms       bigint,
  output         text,
  error          text,
  input_redacted boolean NOT NULL,
  PRIMARY KEY (key, step, call)
);

CREATE TABLE %.phase (
  key      bigint NOT NULL,
  position integer NOT NULL,
  body     text NOT NULL,
  PRIMARY KEY (key, position)
);
ALTER TABLE %.head ADD COLUMN deaths integer NOT NULL DEFAULT 0;
INSERT INTO %.room (name, version) VALUES ('run', 2);
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('1', 'completed', 'mailer', NULL, NULL, 0, NULL, 1, '1795007049584', '{"runId":"completed","agentId":"mailer","agentName":"Mailer","callerId":"me","channelId":"room","guildId":null,"parentRunId":null,"prompt":"send the mails","modelTier":null,"inputs":{"file":"x"},"startedAtMs":1795007049584,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('2', 'picture', 'mailer', NULL, NULL, 0, NULL, 1, '1795007049783', '{"runId":"picture","agentId":"mailer","agentName":"Mailer","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"what is it?","modelTier":null,"inputs":null,"startedAtMs":1795007049783,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('3', 'failed', 'mailer', NULL, NULL, 0, NULL, 1, '1795007049784', '{"runId":"failed","agentId":"mailer","agentName":"Mailer","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"go","modelTier":null,"inputs":null,"startedAtMs":1795007049784,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('4', 'running-read', 'actor', NULL, NULL, 0, NULL, 1, '1795007049786', '{"runId":"running-read","agentId":"actor","agentName":"actor","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"act","modelTier":null,"inputs":null,"startedAtMs":1795007049786,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('5', 'running-idempotent', 'actor', NULL, NULL, 0, NULL, 1, '1795007049790', '{"runId":"running-idempotent","agentId":"actor","agentName":"actor","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"act","modelTier":null,"inputs":null,"startedAtMs":1795007049790,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('6', 'running-once', 'actor', NULL, NULL, 0, NULL, 1, '1795007049814', '{"runId":"running-once","agentId":"actor","agentName":"actor","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"act","modelTier":null,"inputs":null,"startedAtMs":1795007049814,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('7', 'running-reconcile', 'actor', NULL, NULL, 0, NULL, 1, '1795007049839', '{"runId":"running-reconcile","agentId":"actor","agentName":"actor","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"act","modelTier":null,"inputs":null,"startedAtMs":1795007049838,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('8', 'running-begun', 'actor', NULL, NULL, 0, NULL, 1, '1795007049993', '{"runId":"running-begun","agentId":"actor","agentName":"actor","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"begin","modelTier":null,"inputs":null,"startedAtMs":1795007049993,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('9', 'parked', 'mailer', NULL, NULL, 0, NULL, 1, '1795007049996', '{"runId":"parked","agentId":"mailer","agentName":"mailer","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"go","modelTier":null,"inputs":null,"startedAtMs":1795007049996,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('10', 'parked-resolved', 'mailer', NULL, NULL, 0, NULL, 1, '1795007050022', '{"runId":"parked-resolved","agentId":"mailer","agentName":"mailer","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"go","modelTier":null,"inputs":null,"startedAtMs":1795007050022,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('11', 'phased', 'planner', NULL, NULL, 0, NULL, 1, '1795007050040', '{"runId":"phased","agentId":"planner","agentName":"planner","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"the input","modelTier":null,"inputs":null,"startedAtMs":1795007050040,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('12', 'phased-begun', 'planner', NULL, NULL, 0, NULL, 1, '1795007050066', '{"runId":"phased-begun","agentId":"planner","agentName":"planner","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"the input","modelTier":null,"inputs":null,"startedAtMs":1795007050065,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('13', 'redacted', 'pusher', NULL, NULL, 0, NULL, 1, '1795007050069', '{"runId":"redacted","agentId":"pusher","agentName":"pusher","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"use [redacted: github]","modelTier":null,"inputs":null,"startedAtMs":1795007050068,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('14', 'nudged', 'mailer', NULL, NULL, 0, NULL, 1, '1795007050089', '{"runId":"nudged","agentId":"mailer","agentName":"Mailer","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"go","modelTier":null,"inputs":null,"startedAtMs":1795007050089,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('15', '20261118-130410-h9h6qwqe1h4c', 'mailer', 'completed', 'completed', 6, 2, 1, '1795007050105', '{"runId":"20261118-130410-h9h6qwqe1h4c","agentId":"mailer","agentName":"Mailer","callerId":"me","channelId":"room","guildId":null,"parentRunId":"completed","prompt":"send the mails","modelTier":null,"inputs":{"file":"x"},"startedAtMs":1795007049584,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('16', '20261118-130410-a69eesr2svj1', 'planner', 'phased', 'phased', 4, 1, 1, '1795007050121', '{"runId":"20261118-130410-a69eesr2svj1","agentId":"planner","agentName":"planner","callerId":null,"channelId":null,"guildId":null,"parentRunId":"phased","prompt":"the input","modelTier":null,"inputs":null,"startedAtMs":1795007050040,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('17', 'stubbed', 'mailer', NULL, NULL, 0, NULL, 1, '1795007050122', '{"runId":"stubbed","agentId":"mailer","agentName":"Mailer","callerId":null,"channelId":null,"guildId":null,"parentRunId":null,"prompt":"go","modelTier":null,"inputs":null,"startedAtMs":1795007050122,"maxIterations":50}');
INSERT INTO %.run (key, id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info) OVERRIDING SYSTEM VALUE VALUES ('18', '20261118-130410-q8xe6b15k4n6', 'mailer', 'stubbed', 'stubbed', 3, 1, 1, '1795007050145', '{"runId":"20261118-130410-q8xe6b15k4n6","agentId":"mailer","agentName":"Mailer","callerId":null,"channelId":null,"guildId":null,"parentRunId":"stubbed","prompt":"go","modelTier":null,"inputs":null,"startedAtMs":1795007050122,"maxIterations":50}');
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('1', 'completed', 1, NULL, '0', 11, 5, 0, 0, '50', '25', '1795007049780', '"all sent"', NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('2', 'completed', 1, NULL, '0', 4, 1, 0, 0, '10', '5', '1795007049784', '"a picture"', NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('3', 'failed', 1, NULL, '0', 1, 0, 0, 0, '0', '0', '1795007049785', NULL, '{"code":"RUN_MODEL_FAILED","message":"run failed: 503 from the provider","hint":"lazarus runs show failed"}', 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('4', 'running', 1, NULL, '0', 4, 2, 0, 0, '20', '10', '1795007049789', NULL, NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('5', 'running', 1, NULL, '0', 4, 2, 0, 0, '20', '10', '1795007049813', NULL, NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('6', 'running', 1, NULL, '0', 4, 2, 0, 0, '20', '10', '1795007049838', NULL, NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('7', 'running', 1, NULL, '0', 4, 2, 0, 0, '20', '10', '1795007049992', NULL, NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('8', 'running', 1, NULL, '0', 1, 0, 0, 0, '0', '0', '1795007049996', NULL, NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('9', 'needs-human', 1, NULL, '0', 2, 1, 0, 0, '10', '5', '1795007050018', NULL, '{"code":"RUN_NEEDS_HUMAN","message":"parked.1.0 (send) needs a decision: it was started and its outcome is unknown; it is not repeated automatically","hint":"check whether it happened, then: lazarus runs resolve parked.1.0 --done | --retry | --fail"}', 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('10', 'running', 2, NULL, '0', 2, 1, 0, 0, '10', '5', '1795007050031', NULL, '{"code":"RUN_NEEDS_HUMAN","message":"parked-resolved.1.0 (send) needs a decision: it was started and its outcome is unknown; it is not repeated automatically","hint":"check whether it happened, then: lazarus runs resolve parked-resolved.1.0 --done | --retry | --fail"}', 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('11', 'running', 1, NULL, '0', 11, 5, 2, 0, '50', '25', '1795007050060', NULL, NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('12', 'running', 1, NULL, '0', 2, 0, 0, 0, '0', '0', '1795007050068', NULL, NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('13', 'running', 1, NULL, '0', 2, 1, 0, 3, '10', '5', '1795007050088', NULL, NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('14', 'completed', 1, NULL, '0', 5, 2, 0, 0, '20', '10', '1795007050093', '"done"', NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('15', 'running', 0, NULL, '0', 6, 2, 0, 0, '0', '0', '1795007050105', NULL, NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('16', 'running', 0, NULL, '0', 4, 1, 0, 0, '0', '0', '1795007050121', NULL, NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('17', 'stub', 2, NULL, '0', 4, 2, 0, 0, '20', '10', '1795007050139', '"sent"', NULL, 0);
INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms, output, error, deaths) VALUES ('18', 'running', 0, NULL, '0', 3, 1, 0, 0, '0', '0', '1795007050145', NULL, NULL, 0);
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('1', 0, 0, 0, '{"role":"user","content":"send the mails"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('1', 1, 1, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"look","input":{}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('1', 2, 1, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-0-0","toolName":"look","output":{"type":"json","value":{"found":[1,2],"note":"seen"}}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('1', 3, 2, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-1-0","toolName":"send","input":{"to":"anna"}},{"type":"tool-call","toolCallId":"call-1-1","toolName":"send","input":{"to":"berta"}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('1', 4, 2, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-1-0","toolName":"send","output":{"type":"text","value":"sent to anna"}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('1', 5, 2, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-1-1","toolName":"send","output":{"type":"text","value":"sent to berta"}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('1', 6, 3, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-2-0","toolName":"fail","input":{}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('1', 7, 3, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-2-0","toolName":"fail","output":{"type":"error-text","value":"no route"}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('1', 8, 4, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-3-0","toolName":"nope","input":{}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('1', 9, 4, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-3-0","toolName":"nope","output":{"type":"error-text","value":"AI_NoSuchToolError: Model tried to call unavailable tool ''nope''. Available tools: look, send, fail."}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('1', 10, 5, 0, '{"role":"assistant","content":[{"type":"text","text":"all sent"}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('2', 0, 0, 0, '{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image","image":{"$bytes":"AQID"},"mediaType":"image/png"}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('2', 1, 0, 0, '{"role":"assistant","content":"I look."}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('2', 2, 0, 0, '{"role":"user","content":"well?"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('2', 3, 1, 0, '{"role":"assistant","content":[{"type":"text","text":"a picture"}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('3', 0, 0, 0, '{"role":"user","content":"go"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('4', 0, 0, 0, '{"role":"user","content":"act"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('4', 1, 1, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"look","input":{}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('4', 2, 1, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-0-0","toolName":"look","output":{"type":"json","value":{"found":[1,2],"note":"seen"}}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('4', 3, 2, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-1-0","toolName":"act","input":{"n":7}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('5', 0, 0, 0, '{"role":"user","content":"act"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('5', 1, 1, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"look","input":{}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('5', 2, 1, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-0-0","toolName":"look","output":{"type":"json","value":{"found":[1,2],"note":"seen"}}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('5', 3, 2, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-1-0","toolName":"act","input":{"n":7}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('6', 0, 0, 0, '{"role":"user","content":"act"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('6', 1, 1, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"look","input":{}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('6', 2, 1, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-0-0","toolName":"look","output":{"type":"json","value":{"found":[1,2],"note":"seen"}}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('6', 3, 2, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-1-0","toolName":"act","input":{"n":7}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('7', 0, 0, 0, '{"role":"user","content":"act"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('7', 1, 1, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"look","input":{}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('7', 2, 1, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-0-0","toolName":"look","output":{"type":"json","value":{"found":[1,2],"note":"seen"}}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('7', 3, 2, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-1-0","toolName":"act","input":{"n":7}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('8', 0, 0, 0, '{"role":"user","content":"begin"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('9', 0, 0, 0, '{"role":"user","content":"go"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('9', 1, 1, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"send","input":{"to":"anna"}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('10', 0, 0, 0, '{"role":"user","content":"go"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('10', 1, 1, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"send","input":{"to":"anna"}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('11', 0, 0, -1, '{"role":"user","content":"the input"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('11', 1, 0, 0, '{"role":"user","content":"make a plan"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('11', 2, 1, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"look","input":{}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('11', 3, 1, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-0-0","toolName":"look","output":{"type":"json","value":1}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('11', 4, 2, 0, '{"role":"assistant","content":[{"type":"text","text":"out"}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('11', 5, 2, 1, '{"role":"user","content":"first\n\n## plan\nout"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('11', 6, 3, 1, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"look","input":{}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('11', 7, 3, 1, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-0-0","toolName":"look","output":{"type":"json","value":2}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('11', 8, 4, 1, '{"role":"assistant","content":[{"type":"text","text":"out"}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('11', 9, 4, 2, '{"role":"user","content":"second\n\n## plan\nout\n\n## work\nout"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('11', 10, 5, 2, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"look","input":{}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('12', 0, 0, -1, '{"role":"user","content":"the input"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('12', 1, 0, 0, '{"role":"user","content":"make a plan"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('13', 0, 0, 0, '{"role":"user","content":"use [redacted: github]"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('13', 1, 1, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"push","input":{"token":"[redacted: github]"}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('14', 0, 0, 0, '{"role":"user","content":"go"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('14', 1, 1, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"look","input":{}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('14', 2, 1, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-0-0","toolName":"look","output":{"type":"json","value":{"found":[1,2],"note":"seen"}}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('14', 3, 1, 0, '{"role":"user","content":"are you there?"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('14', 4, 2, 0, '{"role":"assistant","content":[{"type":"text","text":"done"}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('17', 0, 0, 0, '{"role":"user","content":"go"}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('17', 1, 1, 0, '{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call-0-0","toolName":"send","input":{"to":"carl"}}]}');
INSERT INTO %.message (key, seq, step, phase, body) VALUES ('17', 2, 1, 0, '{"role":"tool","content":[{"type":"tool-result","toolCallId":"call-0-0","toolName":"send","output":{"type":"text","value":"sent to carl"}}]}');
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('1', 1, 0, 'call-0-0', 'look', 'read', 'done', 1, '1795007049715', '1795007049771', '1795007049771', NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('1', 2, 0, 'call-1-0', 'send', 'once', 'done', 1, '1795007049773', '1795007049774', '1795007049775', NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('1', 2, 1, 'call-1-1', 'send', 'once', 'done', 1, '1795007049773', '1795007049776', '1795007049776', NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('1', 3, 0, 'call-2-0', 'fail', 'once', 'failed', 1, '1795007049777', '1795007049778', '1795007049778', NULL, '"no route"', false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('4', 1, 0, 'call-0-0', 'look', 'read', 'done', 1, '1795007049787', '1795007049788', '1795007049788', NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('4', 2, 0, 'call-1-0', 'act', 'read', 'started', 1, '1795007049789', '1795007049789', NULL, NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('5', 1, 0, 'call-0-0', 'look', 'read', 'done', 1, '1795007049791', '1795007049791', '1795007049791', NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('5', 2, 0, 'call-1-0', 'act', 'idempotent', 'started', 1, '1795007049792', '1795007049793', NULL, NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('6', 1, 0, 'call-0-0', 'look', 'read', 'done', 1, '1795007049816', '1795007049816', '1795007049816', NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('6', 2, 0, 'call-1-0', 'act', 'once', 'started', 1, '1795007049817', '1795007049817', NULL, NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('7', 1, 0, 'call-0-0', 'look', 'read', 'done', 1, '1795007049839', '1795007049969', '1795007049969', NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('7', 2, 0, 'call-1-0', 'act', 'reconcile', 'started', 1, '1795007049971', '1795007049971', NULL, NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('9', 1, 0, 'call-0-0', 'send', 'once', 'unknown', 1, '1795007050004', '1795007050006', NULL, NULL, '"it was started and its outcome is unknown"', false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('10', 1, 0, 'call-0-0', 'send', 'once', 'done', 1, '1795007050024', '1795007050025', '1795007050031', '"it went through"', NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('11', 1, 0, 'call-0-0', 'look', 'read', 'done', 1, '1795007050045', '1795007050046', '1795007050046', NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('11', 3, 0, 'call-0-0', 'look', 'read', 'done', 1, '1795007050048', '1795007050051', '1795007050051', NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('11', 5, 0, 'call-0-0', 'look', 'read', 'started', 1, '1795007050056', '1795007050060', NULL, NULL, NULL, false);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('13', 1, 0, 'call-0-0', 'push', 'once', 'prepared', 0, '1795007050082', NULL, NULL, NULL, NULL, true);
INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms, output, error, input_redacted) VALUES ('14', 1, 0, 'call-0-0', 'look', 'read', 'done', 1, '1795007050089', '1795007050092', '1795007050092', NULL, NULL, false);
INSERT INTO %.phase (key, position, body) VALUES ('11', 0, '{"name":"plan","output":"out","fellBack":false}');
INSERT INTO %.phase (key, position, body) VALUES ('11', 1, '{"name":"work","output":"out","fellBack":false}');
SELECT setval(pg_get_serial_sequence('%.run', 'key'), (SELECT max(key) FROM %.run));
