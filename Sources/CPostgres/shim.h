#ifndef KEYWAY_POSTGRES_SHIM_H
#define KEYWAY_POSTGRES_SHIM_H
// libpq, PostgreSQL's own client library: Debian's libpq-dev.
#include <libpq-fe.h>

/// The field code of the SQLSTATE in an error: a macro of postgres_ext.h with a cast, which Swift does not import.
static const int keyway_postgres_sqlstate = PG_DIAG_SQLSTATE;
#endif
