"""Hooks of schemathesis that name, in most requests, objects and keys of the example that there are."""
import random

import schemathesis

PLACES = {
    "Account": (["1", "2"], ["balance", "owner", "owner.lastName", "transactions", "balance,owner", "owner.none"]),
    "Department": (["1", "2"], ["name", "head", "employees", "employees.@sum.salary", "employees.department.employees"]),
    "Employee": (["1", "2", "3"], ["salary", "fullName", "born", "department.name", "spouse"]),
    "Note": (["1"], ["text", "@count", "text."]),
}
QUERY = {
    "filter": ["true", "size(@ref) > 1", "1 +"],
    "sort": ["@ref", "-none", ""],
    "section": ["none"],
    "keys": ["@count", "lastName", "name,head", "balance"],
    "expand": ["owner", "head", "employees,head"],
    "aggregate": ["@count", "@sum.salary", "@max"],
    "options": ["old,new", "none", "initial,prior", "some"],
    "index": ["0", "9", "-1"],
    "operation": ["union", "set"],
    "object": ["Employee/1", "Note/1"],
    "limit": ["1", "2"],
    "entities": ["Account,Person", "None"],
}
BODIES = {
    "/v1/objects/{Entity}": [{"lastName": "A", "firstName": "B"}, {"balance": 1}, {"salary": -1}, {"fullName": "x"}],
    "/v1/objects/{Entity}/{id}": [{}, {"balance": 2}, {"text": "t"}, {"name": "n"}, {"owner": "Person/99"}],
    "/v1/objects/{Entity}/{id}/{keyPath}": [1, "Person/7", "Employee/2", ["Employee/1"], None, {"lastName": "A", "firstName": "B"}],
    "/v1/transactions": [
        {"operations": [{"op": "set", "object": "Account/1", "keyPath": "balance", "value": 3}]},
        {"operations": [{"op": "create", "entity": "Note", "value": {"text": "t"}, "lifetime": 60}]},
        {"operations": [{"op": "willChange", "object": "Account/1", "key": "balance"}]},
    ],
    "/v1/streams": [
        {"cells": {"a": {"object": "Account/1", "options": ["old", "new", "initial"]}, "q": {"entity": "Employee"}}},
        {"cells": {"q": {"entity": "Employee", "sort": "-salary", "section": "department.name", "limit": 2}}},
    ],
}


def pick(value, share):
    """A source of randomness that depends on the value alone; nil in the rest of the cases."""
    source = random.Random(repr(value))
    return source if source.random() < share else None


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    source = pick(path_parameters, 0.8)
    if source and path_parameters and "Entity" in path_parameters:
        entity = source.choice(sorted(PLACES))
        ids, paths = PLACES[entity]
        named = {"Entity": entity, "id": source.choice(ids), "keyPath": source.choice(paths)}
        return {name: named.get(name, value) for name, value in path_parameters.items()}
    return path_parameters


@schemathesis.hook
def map_query(context, query):
    source = pick(query, 0.9)
    if not (source and query):
        return query
    some = source.sample(sorted(query), min(len(query), source.randint(0, 2)))
    return {name: source.choice(QUERY[name]) if name in QUERY else query[name] for name in some}


@schemathesis.hook
def map_headers(context, headers):
    source = pick(headers, 0.7)
    return {} if source and headers else headers


@schemathesis.hook
def map_body(context, body):
    source = pick(body, 0.7)
    bodies = BODIES.get(context.operation.path)
    return source.choice(bodies) if source and bodies else body
