"""Who can reach what: users, nested groups, roles and documents as one graph of grants, kept closed while it changes.

    python examples/permissions.py

`member` says who belongs to what, and what a role may open. Reachability is a view: a request asks what one user may
open, or who may open one document, and a change feed tells whom a change of one membership concerns. The path says why.
"""

from __future__ import annotations

import random

import ivme

GRANTS = [
    ("ada", "engineering"),
    ("bob", "engineering"),
    ("cem", "interns"),
    ("eva", "finance"),
    ("interns", "engineering"),
    ("engineering", "staff"),
    ("finance", "staff"),
    ("staff", "reader"),
    ("engineering", "deployer"),
    ("finance", "auditor"),
    ("reader", "handbook"),
    ("deployer", "runbook"),
    ("auditor", "ledger"),
]
USERS = ("ada", "bob", "cem", "eva")
DOCUMENTS = ("handbook", "runbook", "ledger")
Grant = tuple[str, str]

MAY_OPEN = "Q(D | U) = users(U), closure(member)(U, D), documents(D)"
WHO_MAY = "Q(U | D) = users(U), closure(member)(U, D), documents(D)"
ALLOWED = "Q(U, D) = users(U), closure(member)(U, D), documents(D)"


class Permissions:
    """The graph, and the three questions about it."""

    def __init__(self, grants: list[Grant], users: tuple[str, ...], documents: tuple[str, ...]) -> None:
        self.db = ivme.Database()
        self.db.create_table("member", {"who": "string", "what": "string"})
        self.db.create_table("users", {"name": "string"})
        self.db.create_table("documents", {"name": "string"})
        self.db.insert("member", grants)
        self.db.insert("users", [(name,) for name in users])
        self.db.insert("documents", [(name,) for name in documents])
        self.reach = self.db.create_view("reach", "Q(X, Y) = closure(member)")
        self.may_open = self.db.create_view("may_open", MAY_OPEN)
        self.who_may = self.db.create_view("who_may", WHO_MAY)
        self.allowed = self.db.create_view("allowed", ALLOWED)

    def change(self, grant: Grant, sign: int) -> dict[Grant, int]:
        """Grants or revokes, and gives the pairs of user and document for which this makes a difference."""
        with self.allowed.changes() as feed:
            (self.db.insert if sign > 0 else self.db.delete)("member", [grant])
            return next(iter(feed), {})

    def why(self, user: str, document: str) -> str:
        return " → ".join(self.reach.path(user, document) or ["no way"])


def many(users: int, groups: int, seed: int) -> tuple[list[Grant], tuple[str, ...], tuple[str, ...]]:
    """A larger company: groups in groups, some of which may open a document."""
    rng = random.Random(seed)
    names, documents = tuple(f"u{i}" for i in range(users)), tuple(f"d{i}" for i in range(groups // 3))
    grants = {(name, f"g{rng.randrange(groups)}") for name in names}
    grants |= {(f"g{i}", f"g{rng.randrange(groups)}") for i in range(groups)}
    grants |= {(f"g{rng.randrange(groups)}", document) for document in documents}
    return sorted(grants), names, documents


def main() -> None:
    permissions = Permissions(GRANTS, USERS, DOCUMENTS)
    for user in USERS:
        print(f"{user} may open {', '.join(sorted(document for (document,) in permissions.may_open(U=user)))}")
    print(f"the ledger is open to {', '.join(sorted(user for (user,) in permissions.who_may(D='ledger')))}")
    print(f"why may cem open the runbook? {permissions.why('cem', 'runbook')}")
    for grant, sign in ((("interns", "engineering"), -1), (("staff", "auditor"), 1)):
        print(f"{'granting' if sign > 0 else 'revoking'} {grant[0]} → {grant[1]}")
        for (user, document), weight in sorted(permissions.change(grant, sign).items()):
            print(f"  {user} {'gains' if weight > 0 else 'loses'} {document}")


if __name__ == "__main__":
    main()
