-- PostgreSQL's catalog in DuckDB: the tables that clients read, and the functions that they call.
-- Columns that no row of ours fills have a fixed value.

CREATE SCHEMA pg;
CREATE SCHEMA info;

-- Tables with rows; catalog_rows.py fills their first columns.

CREATE TABLE pg.pg_namespace (
    oid BIGINT, nspname VARCHAR, nspowner BIGINT DEFAULT 10, nspacl VARCHAR[]
);

CREATE TABLE pg.pg_class (
    oid BIGINT, relname VARCHAR, relnamespace BIGINT, relkind VARCHAR, relnatts BIGINT, relhasindex BOOLEAN,
    reltuples DOUBLE, relowner BIGINT DEFAULT 10, reltype BIGINT DEFAULT 0, reloftype BIGINT DEFAULT 0, relam
    BIGINT DEFAULT 0, relfilenode BIGINT DEFAULT 0, reltablespace BIGINT DEFAULT 0, relpages BIGINT DEFAULT 0,
    reltoastrelid BIGINT DEFAULT 0, relisshared BOOLEAN DEFAULT false, relpersistence VARCHAR DEFAULT 'p',
    relchecks BIGINT DEFAULT 0, relhasrules BOOLEAN DEFAULT false, relhastriggers BOOLEAN DEFAULT false,
    relhassubclass BOOLEAN DEFAULT false, relrowsecurity BOOLEAN DEFAULT false, relforcerowsecurity BOOLEAN
    DEFAULT false, relispopulated BOOLEAN DEFAULT true, relreplident VARCHAR DEFAULT 'd', relispartition
    BOOLEAN DEFAULT false, relacl VARCHAR[], reloptions VARCHAR[], relpartbound VARCHAR, relhasoids BOOLEAN
    DEFAULT false
);

CREATE TABLE pg.pg_attribute (
    attrelid BIGINT, attname VARCHAR, atttypid BIGINT, attlen BIGINT, attnum BIGINT, atttypmod BIGINT,
    attnotnull BOOLEAN, attndims BIGINT DEFAULT 0, atthasdef BOOLEAN DEFAULT false, attidentity VARCHAR
    DEFAULT '', attgenerated VARCHAR DEFAULT '', attisdropped BOOLEAN DEFAULT false, attislocal BOOLEAN
    DEFAULT true, attcollation BIGINT DEFAULT 0, attstattarget BIGINT DEFAULT -1, attstorage VARCHAR DEFAULT
    'p', attcompression VARCHAR DEFAULT '', attacl VARCHAR[], attoptions VARCHAR[], attfdwoptions VARCHAR[]
);

CREATE TABLE pg.pg_type (
    oid BIGINT, typname VARCHAR, typlen BIGINT, typcategory VARCHAR, typnamespace BIGINT DEFAULT 11, typowner
    BIGINT DEFAULT 10, typtype VARCHAR DEFAULT 'b', typrelid BIGINT DEFAULT 0, typelem BIGINT DEFAULT 0,
    typarray BIGINT DEFAULT 0, typbasetype BIGINT DEFAULT 0, typtypmod BIGINT DEFAULT -1, typnotnull BOOLEAN
    DEFAULT false, typdelim VARCHAR DEFAULT ',', typcollation BIGINT DEFAULT 0, typinput VARCHAR DEFAULT '',
    typdefault VARCHAR, typisdefined BOOLEAN DEFAULT true
);

CREATE TABLE pg.pg_constraint (
    oid BIGINT, conname VARCHAR, connamespace BIGINT, contype VARCHAR, conrelid BIGINT, conindid BIGINT,
    conkey BIGINT[], confrelid BIGINT DEFAULT 0, confkey BIGINT[], condeferrable BOOLEAN DEFAULT false,
    condeferred BOOLEAN DEFAULT false, convalidated BOOLEAN DEFAULT true, contypid BIGINT DEFAULT 0,
    conparentid BIGINT DEFAULT 0, confupdtype VARCHAR DEFAULT 'a', confdeltype VARCHAR DEFAULT 'a',
    confmatchtype VARCHAR DEFAULT 's', conislocal BOOLEAN DEFAULT true
);

CREATE TABLE pg.pg_index (
    indexrelid BIGINT, indrelid BIGINT, indkey BIGINT[], indnatts BIGINT, indnkeyatts BIGINT, indisunique
    BOOLEAN DEFAULT true, indisprimary BOOLEAN DEFAULT true, indisclustered BOOLEAN DEFAULT false, indisvalid
    BOOLEAN DEFAULT true, indisreplident BOOLEAN DEFAULT false, indoption BIGINT[], indexprs VARCHAR, indpred
    VARCHAR, indisexclusion BOOLEAN DEFAULT false, indimmediate BOOLEAN DEFAULT true, indnullsnotdistinct
    BOOLEAN DEFAULT false, indclass BIGINT[], indcollation BIGINT[]
);

CREATE TABLE pg.pg_database (
    oid BIGINT, datname VARCHAR, datdba BIGINT DEFAULT 10, encoding BIGINT DEFAULT 6, datcollate VARCHAR
    DEFAULT 'C', datctype VARCHAR DEFAULT 'C', datistemplate BOOLEAN DEFAULT false, datallowconn BOOLEAN
    DEFAULT true, datacl VARCHAR[], daticulocale VARCHAR, datlocprovider VARCHAR DEFAULT 'c', dattablespace
    BIGINT DEFAULT 0
);

CREATE TABLE pg.pg_roles (
    oid BIGINT, rolname VARCHAR, rolsuper BOOLEAN DEFAULT true, rolinherit BOOLEAN DEFAULT true, rolcreaterole
    BOOLEAN DEFAULT false, rolcreatedb BOOLEAN DEFAULT false, rolcanlogin BOOLEAN DEFAULT true, rolreplication
    BOOLEAN DEFAULT false, rolbypassrls BOOLEAN DEFAULT false, rolconnlimit BIGINT DEFAULT -1, rolvaliduntil
    TIMESTAMP, rolconfig VARCHAR[]
);

CREATE TABLE pg.pg_tables (
    schemaname VARCHAR, tablename VARCHAR, tableowner VARCHAR, hasindexes BOOLEAN
);

CREATE TABLE pg.pg_views (
    schemaname VARCHAR, viewname VARCHAR, viewowner VARCHAR, definition VARCHAR
);

CREATE TABLE pg.pg_am (
    oid BIGINT, amname VARCHAR, amtype VARCHAR
);

CREATE TABLE pg.pg_settings (
    name VARCHAR, setting VARCHAR, unit VARCHAR, category VARCHAR
);

CREATE TABLE info.schemata (
    catalog_name VARCHAR, schema_name VARCHAR, schema_owner VARCHAR
);

CREATE TABLE info.tables (
    table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, table_type VARCHAR, is_insertable_into
    VARCHAR
);

CREATE TABLE info.views (
    table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, view_definition VARCHAR
);

CREATE TABLE info.columns (
    table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR, ordinal_position
    BIGINT, column_default VARCHAR, is_nullable VARCHAR, data_type VARCHAR, udt_name VARCHAR,
    numeric_precision BIGINT, numeric_scale BIGINT, character_maximum_length BIGINT, datetime_precision
    BIGINT, is_identity VARCHAR, is_generated VARCHAR
);

CREATE TABLE info.table_constraints (
    constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR, table_schema VARCHAR,
    table_name VARCHAR, constraint_type VARCHAR
);

CREATE TABLE info.key_column_usage (
    constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR, table_schema VARCHAR,
    table_name VARCHAR, column_name VARCHAR, ordinal_position BIGINT
);

-- Tables without rows: what they list does not exist in ivme.

CREATE TABLE pg.pg_attrdef (oid BIGINT, adrelid BIGINT, adnum BIGINT, adbin VARCHAR);
CREATE TABLE pg.pg_description (objoid BIGINT, classoid BIGINT, objsubid BIGINT, description VARCHAR);
CREATE TABLE pg.pg_shdescription (objoid BIGINT, classoid BIGINT, description VARCHAR);
CREATE TABLE pg.pg_collation (oid BIGINT, collname VARCHAR, collnamespace BIGINT);
CREATE TABLE pg.pg_proc (oid BIGINT, proname VARCHAR, pronamespace BIGINT, prokind VARCHAR, proowner BIGINT);
CREATE TABLE pg.pg_matviews (
    schemaname VARCHAR, matviewname VARCHAR, matviewowner VARCHAR, definition VARCHAR
);
CREATE TABLE pg.pg_inherits (inhrelid BIGINT, inhparent BIGINT, inhseqno BIGINT, inhdetachpending BOOLEAN);
CREATE TABLE pg.pg_trigger (
    oid BIGINT, tgname VARCHAR, tgrelid BIGINT, tgisinternal BOOLEAN, tgenabled VARCHAR, tgparentid BIGINT,
    tgconstraint BIGINT, tgdeferrable BOOLEAN, tginitdeferred BOOLEAN
);
CREATE TABLE pg.pg_policy (
    oid BIGINT, polname VARCHAR, polrelid BIGINT, polpermissive BOOLEAN, polroles BIGINT[], polcmd VARCHAR,
    polqual VARCHAR, polwithcheck VARCHAR
);
CREATE TABLE pg.pg_statistic_ext (
    oid BIGINT, stxrelid BIGINT, stxnamespace BIGINT, stxname VARCHAR, stxkeys BIGINT[], stxkind VARCHAR[],
    stxstattarget BIGINT
);
CREATE TABLE pg.pg_publication (oid BIGINT, pubname VARCHAR, puballtables BOOLEAN);
CREATE TABLE pg.pg_publication_rel (
    oid BIGINT, prpubid BIGINT, prrelid BIGINT, prqual VARCHAR, prattrs BIGINT[]
);
CREATE TABLE pg.pg_publication_namespace (oid BIGINT, pnpubid BIGINT, pnnspid BIGINT);
CREATE TABLE pg.pg_foreign_table (ftrelid BIGINT, ftserver BIGINT, ftoptions VARCHAR[]);
CREATE TABLE pg.pg_foreign_server (oid BIGINT, srvname VARCHAR);
CREATE TABLE pg.pg_enum (oid BIGINT, enumtypid BIGINT, enumlabel VARCHAR, enumsortorder DOUBLE);
CREATE TABLE pg.pg_range (rngtypid BIGINT, rngsubtype BIGINT);
CREATE TABLE pg.pg_extension (oid BIGINT, extname VARCHAR, extversion VARCHAR, extnamespace BIGINT);
CREATE TABLE pg.pg_tablespace (oid BIGINT, spcname VARCHAR);
CREATE TABLE pg.pg_sequence (
    seqrelid BIGINT, seqtypid BIGINT, seqstart BIGINT, seqincrement BIGINT, seqmin BIGINT, seqmax BIGINT,
    seqcache BIGINT, seqcycle BOOLEAN
);
CREATE TABLE pg.pg_opclass (oid BIGINT, opcname VARCHAR, opcdefault BOOLEAN, opcmethod BIGINT);
CREATE TABLE pg.pg_sequences (schemaname VARCHAR, sequencename VARCHAR);
CREATE TABLE pg.pg_depend (
    classid BIGINT, objid BIGINT, objsubid BIGINT, refclassid BIGINT, refobjid BIGINT, refobjsubid BIGINT,
    deptype VARCHAR
);
CREATE TABLE pg.pg_rewrite (
    oid BIGINT, rulename VARCHAR, ev_class BIGINT, ev_type VARCHAR, is_instead BOOLEAN, ev_enabled VARCHAR
);
CREATE TABLE pg.pg_indexes (schemaname VARCHAR, tablename VARCHAR, indexname VARCHAR, indexdef VARCHAR);
CREATE TABLE pg.pg_auth_members (roleid BIGINT, member BIGINT);
CREATE TABLE pg.pg_stat_activity (pid BIGINT, usename VARCHAR, state VARCHAR, query VARCHAR);
CREATE TABLE info.referential_constraints (
    constraint_name VARCHAR, constraint_schema VARCHAR, unique_constraint_name VARCHAR
);
CREATE TABLE info.routines (routine_schema VARCHAR, routine_name VARCHAR, routine_type VARCHAR);
CREATE TABLE info.sequences (sequence_schema VARCHAR, sequence_name VARCHAR);
CREATE TABLE info.constraint_column_usage (
    table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR, constraint_name VARCHAR
);

-- Functions.

CREATE TYPE name AS VARCHAR;

CREATE MACRO format_type(t, m) AS CASE t
    WHEN 16 THEN 'boolean' WHEN 17 THEN 'bytea' WHEN 20 THEN 'bigint' WHEN 25 THEN 'text' WHEN 114 THEN 'json'
    WHEN 701 THEN 'double precision' WHEN 1082 THEN 'date' WHEN 1114 THEN 'timestamp without time zone'
    WHEN 1700 THEN CASE WHEN m > 0 THEN 'numeric(' || ((m - 4) >> 16) || ',' || ((m - 4) & 65535) || ')' ELSE 'numeric' END
    ELSE (SELECT min(typname) FROM pg.pg_type WHERE oid = t)
END;
CREATE MACRO pg_table_is_visible(a) AS true;
CREATE MACRO pg_type_is_visible(a) AS true;
CREATE MACRO pg_function_is_visible(a) AS true;
CREATE MACRO pg_get_userbyid(a) AS 'ivme';
CREATE MACRO pg_encoding_to_char(a) AS 'UTF8';
CREATE MACRO pg_is_in_recovery() AS false;
CREATE MACRO pg_backend_pid() AS 1;
CREATE MACRO pg_postmaster_start_time() AS now();
CREATE MACRO pg_relation_size(a) AS 0;
CREATE MACRO pg_total_relation_size(a) AS 0;
CREATE MACRO pg_database_size(a) AS 0;
CREATE MACRO pg_get_expr(a, b) AS NULL::VARCHAR, (a, b, c) AS NULL::VARCHAR;
CREATE MACRO pg_get_function_result(a) AS NULL::VARCHAR;
CREATE MACRO pg_get_function_arguments(a) AS NULL::VARCHAR;
CREATE MACRO pg_get_function_identity_arguments(a) AS NULL::VARCHAR;
CREATE MACRO array_upper(a, b) AS len(a);
CREATE MACRO array_lower(a, b) AS 1;
CREATE MACRO pg_get_serial_sequence(a, b) AS NULL::VARCHAR;
CREATE MACRO pg_get_partkeydef(a) AS NULL::VARCHAR;
CREATE MACRO pg_get_statisticsobjdef_columns(a) AS NULL::VARCHAR;
CREATE MACRO pg_relation_is_publishable(a) AS false;
CREATE MACRO pg_tablespace_location(a) AS '';
CREATE MACRO obj_description(a) AS NULL::VARCHAR, (a, b) AS NULL::VARCHAR;
CREATE MACRO col_description(a, b) AS NULL::VARCHAR;
CREATE MACRO shobj_description(a, b) AS NULL::VARCHAR;
CREATE MACRO array_to_string(a, b) AS list_aggregate(a, 'string_agg', b), (a, b, c) AS list_aggregate(a, 'string_agg', b);
CREATE MACRO has_table_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO has_schema_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO has_database_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO has_column_privilege(a, b, c) AS true, (a, b, c, d) AS true;
CREATE MACRO current_schemas(a) AS ['pg_catalog', 'public'];
CREATE MACRO set_config(a, b, c) AS b;
CREATE MACRO quote_ident(a) AS '"' || replace(a, '"', '""') || '"';
CREATE MACRO to_regtype(a) AS (SELECT min(oid) FROM pg.pg_type WHERE typname = a);
CREATE MACRO to_regnamespace(a) AS (SELECT min(oid) FROM pg.pg_namespace WHERE nspname = a);
CREATE MACRO pg_collation_is_visible(a) AS true;
CREATE MACRO generate_subscripts(a, b) AS unnest(range(1, len(a) + 1));
CREATE MACRO to_regclass(a) AS (SELECT min(oid) FROM pg.pg_class WHERE relname = replace(replace(a, '"', ''), 'public.', ''));

CREATE MACRO names_of(relation, places) AS (
    SELECT string_agg(attname, ', ' ORDER BY list_position(places, attnum))
    FROM pg.pg_attribute WHERE attrelid = relation AND list_contains(places, attnum)
);
CREATE MACRO index_text(a) AS (
    SELECT min('CREATE UNIQUE INDEX ' || relname || ' ON public USING btree (' || names_of(indrelid, indkey) || ')')
    FROM pg.pg_index JOIN pg.pg_class ON oid = indexrelid WHERE indexrelid = a
);
CREATE MACRO constraint_text(a) AS (
    SELECT min('PRIMARY KEY (' || names_of(conrelid, conkey) || ')') FROM pg.pg_constraint WHERE oid = a
);
CREATE MACRO view_text(a) AS (
    SELECT min(definition) FROM pg.pg_views JOIN pg.pg_class ON viewname = relname WHERE oid = a
);
CREATE MACRO pg_get_indexdef(a) AS index_text(a), (a, b, c) AS index_text(a);
CREATE MACRO pg_get_constraintdef(a) AS constraint_text(a), (a, b) AS constraint_text(a);
CREATE MACRO pg_get_viewdef(a) AS view_text(a), (a, b) AS view_text(a);
CREATE MACRO setting_of(a) AS (SELECT min(setting) FROM pg.pg_settings WHERE lower(name) = lower(a)),
    (a, b) AS (SELECT min(setting) FROM pg.pg_settings WHERE lower(name) = lower(a));

SET scalar_subquery_error_on_multiple_rows = false;
SET lock_configuration = true;
