--
-- PostgreSQL database dump
--


-- Dumped from database version 15.20 (Debian 15.20-0+deb12u1)
-- Dumped by pg_dump version 15.20 (Debian 15.20-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: keyway; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA keyway;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: blocks; Type: TABLE; Schema: keyway; Owner: -
--

CREATE TABLE keyway.blocks (
    writing bigint NOT NULL,
    number bigint NOT NULL,
    body bytea NOT NULL
);


--
-- Name: head; Type: TABLE; Schema: keyway; Owner: -
--

CREATE TABLE keyway.head (
    one bigint NOT NULL,
    layout bigint NOT NULL,
    epoch text NOT NULL,
    schema bigint NOT NULL,
    base bigint NOT NULL,
    base_digest bigint NOT NULL,
    last bigint NOT NULL,
    digest bigint NOT NULL,
    pen text NOT NULL,
    revoked bigint NOT NULL,
    CONSTRAINT head_one_check CHECK ((one = 1))
);


--
-- Name: maintenance; Type: TABLE; Schema: keyway; Owner: -
--

CREATE TABLE keyway.maintenance (
    one bigint NOT NULL
);


--
-- Name: nodes; Type: TABLE; Schema: keyway; Owner: -
--

CREATE TABLE keyway.nodes (
    url text NOT NULL,
    heard timestamp with time zone NOT NULL
);


--
-- Name: records; Type: TABLE; Schema: keyway; Owner: -
--

CREATE TABLE keyway.records (
    revision bigint NOT NULL,
    milliseconds bigint NOT NULL,
    digest bigint NOT NULL,
    batch bigint NOT NULL,
    body bytea NOT NULL
);


--
-- Name: revocations; Type: TABLE; Schema: keyway; Owner: -
--

CREATE TABLE keyway.revocations (
    subject bytea NOT NULL,
    milliseconds bigint NOT NULL,
    digest bigint NOT NULL
);


--
-- Name: schemas; Type: TABLE; Schema: keyway; Owner: -
--

CREATE TABLE keyway.schemas (
    digest bigint NOT NULL,
    text text NOT NULL
);


--
-- Name: snapshots; Type: TABLE; Schema: keyway; Owner: -
--

CREATE TABLE keyway.snapshots (
    revision bigint NOT NULL,
    digest bigint NOT NULL,
    milliseconds bigint NOT NULL,
    writing bigint NOT NULL,
    blocks bigint NOT NULL,
    contents bigint NOT NULL
);


--
-- Data for Name: blocks; Type: TABLE DATA; Schema: keyway; Owner: -
--



--
-- Data for Name: head; Type: TABLE DATA; Schema: keyway; Owner: -
--

INSERT INTO keyway.head VALUES (1, 1, 'k3prz5', -8652325217336328189, 0, 0, 14, -3458852953551704969, 'http://127.0.0.1:34251', 0);


--
-- Data for Name: maintenance; Type: TABLE DATA; Schema: keyway; Owner: -
--

INSERT INTO keyway.maintenance VALUES (1);


--
-- Data for Name: nodes; Type: TABLE DATA; Schema: keyway; Owner: -
--

INSERT INTO keyway.nodes VALUES ('http://127.0.0.1:34251', '2026-11-27 00:44:49.176191+00');


--
-- Data for Name: records; Type: TABLE DATA; Schema: keyway; Owner: -
--

INSERT INTO keyway.records VALUES (1, 1795740289252, 8841706685901508348, -3992331186869146274, '\x5b6e756c6c2c5b5b22707574222c22506572736f6e2f31222c7b226e616d65223a22416461222c226e6f746573223a7b226e223a5b312c302e312c6e756c6c5d7d7d5d5d5d');
INSERT INTO keyway.records VALUES (2, 1795740289267, -2482760650318808837, -5220929125278422643, '\x5b6e756c6c2c5b5b22707574222c22506572736f6e2f32222c7b226e616d65223a224772616365222c226e6f746573223a7b226e223a5b322c302e312c6e756c6c5d7d7d5d5d5d');
INSERT INTO keyway.records VALUES (3, 1795740289272, -3820105448148959654, 7581776566834242691, '\x5b6e756c6c2c5b5b22707574222c22506572736f6e2f33222c7b226e616d65223a22456473676572222c226e6f746573223a7b226e223a5b332c302e312c6e756c6c5d7d7d5d5d5d');
INSERT INTO keyway.records VALUES (4, 1795740289276, -8067351242028936748, -3155612916895303585, '\x5b6e756c6c2c5b5b22707574222c22506572736f6e2f34222c7b226e616d65223a2242617262617261222c226e6f746573223a7b226e223a5b342c302e312c6e756c6c5d7d7d5d5d5d');
INSERT INTO keyway.records VALUES (5, 1795740289280, -980836969119628929, -4343881339874218509, '\x5b6e756c6c2c5b5b22707574222c225465616d2f31222c7b226e616d65223a22436f6d70696c657273222c22627564676574223a313030303030303030303030303030302e307d5d5d5d');
INSERT INTO keyway.records VALUES (6, 1795740289282, -7487863878169118132, -5241577776005115151, '\x5b6e756c6c2c5b5b22696e73657274222c225465616d2f31222c226d656d62657273222c5b22506572736f6e2f32225d2c6e756c6c5d5d5d');
INSERT INTO keyway.records VALUES (7, 1795740289287, -403358644586459028, -5269596154726608200, '\x5b6e756c6c2c5b5b22707574222c225465616d2f32222c7b226e616d65223a2250726f6f6673222c22627564676574223a323030303030303030303030303030302e307d5d5d5d');
INSERT INTO keyway.records VALUES (8, 1795740289296, -1561167256256322236, 3866083463373087320, '\x5b6e756c6c2c5b5b22696e73657274222c225465616d2f32222c226d656d62657273222c5b22506572736f6e2f32225d2c6e756c6c5d5d5d');
INSERT INTO keyway.records VALUES (9, 1795740289300, -2399737837280471691, 6295847814761525457, '\x5b6e756c6c2c5b5b22696e73657274222c225465616d2f31222c226d656d62657273222c5b22506572736f6e2f31225d2c6e756c6c5d5d5d');
INSERT INTO keyway.records VALUES (10, 1795740289305, -5182227698388814430, 3418895638742086335, '\x5b6e756c6c2c5b5b22736574222c225465616d2f31222c226c656164222c22506572736f6e2f31225d5d5d');
INSERT INTO keyway.records VALUES (11, 1795740289308, -3193654594936969484, -3855091513158098914, '\x5b6e756c6c2c5b5b22736574222c225465616d2f31222c226e616d65222c22436f6d70696c657273205c753230323820616e6420f09f9880225d5d5d');
INSERT INTO keyway.records VALUES (12, 1795740289312, -6536927512120052290, 8389736762172878102, '\x5b6e756c6c2c5b5b22736574222c22506572736f6e2f33222c22626f726e222c22313933302d30352d3131225d5d5d');
INSERT INTO keyway.records VALUES (13, 1795740289316, 5733886708797868058, 416162542124729624, '\x5b6e756c6c2c5b5b2264656c657465222c22506572736f6e2f34225d5d5d');
INSERT INTO keyway.records VALUES (14, 1795740289318, -3458852953551704969, -4573729218961533298, '\x5b6e756c6c2c5b5b22736574222c225465616d2f31222c22627564676574222c31322e355d5d5d');


--
-- Data for Name: revocations; Type: TABLE DATA; Schema: keyway; Owner: -
--



--
-- Data for Name: schemas; Type: TABLE DATA; Schema: keyway; Owner: -
--

INSERT INTO keyway.schemas VALUES (-8652325217336328189, '# The schema of the stores beside this file.
entities:
  Team:
    keys:
      name: { type: string, optional: false }
      budget: { type: number, minimum: 0 }
      members: { toMany: Person, ordered: true, inverse: teams }
      lead: { toOne: Person }
  Person:
    keys:
      name: { type: string, optional: false }
      born: { type: date }
      notes: { type: json }
      badge: { type: string, computed: "name + ''!''" }
      teams: { toMany: Team, inverse: members }
');


--
-- Data for Name: snapshots; Type: TABLE DATA; Schema: keyway; Owner: -
--



--
-- Name: blocks blocks_pkey; Type: CONSTRAINT; Schema: keyway; Owner: -
--

ALTER TABLE ONLY keyway.blocks
    ADD CONSTRAINT blocks_pkey PRIMARY KEY (writing, number);


--
-- Name: head head_pkey; Type: CONSTRAINT; Schema: keyway; Owner: -
--

ALTER TABLE ONLY keyway.head
    ADD CONSTRAINT head_pkey PRIMARY KEY (one);


--
-- Name: maintenance maintenance_pkey; Type: CONSTRAINT; Schema: keyway; Owner: -
--

ALTER TABLE ONLY keyway.maintenance
    ADD CONSTRAINT maintenance_pkey PRIMARY KEY (one);


--
-- Name: nodes nodes_pkey; Type: CONSTRAINT; Schema: keyway; Owner: -
--

ALTER TABLE ONLY keyway.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (url);


--
-- Name: records records_pkey; Type: CONSTRAINT; Schema: keyway; Owner: -
--

ALTER TABLE ONLY keyway.records
    ADD CONSTRAINT records_pkey PRIMARY KEY (revision);


--
-- Name: revocations revocations_pkey; Type: CONSTRAINT; Schema: keyway; Owner: -
--

ALTER TABLE ONLY keyway.revocations
    ADD CONSTRAINT revocations_pkey PRIMARY KEY (subject);


--
-- Name: schemas schemas_pkey; Type: CONSTRAINT; Schema: keyway; Owner: -
--

ALTER TABLE ONLY keyway.schemas
    ADD CONSTRAINT schemas_pkey PRIMARY KEY (digest);


--
-- Name: snapshots snapshots_pkey; Type: CONSTRAINT; Schema: keyway; Owner: -
--

ALTER TABLE ONLY keyway.snapshots
    ADD CONSTRAINT snapshots_pkey PRIMARY KEY (revision);


--
-- PostgreSQL database dump complete
--


