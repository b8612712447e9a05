"""Self-joins: which contents of a shared map the propagation of each occurrence reads."""

from __future__ import annotations

from ivme.plan.assemble.blueprint import IndicatorLeaf, Leaf, Node, Propagation, Rule, StoredView, referred
from ivme.plan.assemble.storage import MapKey, Storage


class Versions:
    """Which contents of the changed relation's shared maps each propagation must see."""

    def __init__(self, storage: Storage, propagations: list[Propagation]) -> None:
        self._storage = storage
        self._order = {propagation.use: k for k, propagation in enumerate(propagations)}
        self._bases = {use.label: k for use, k in self._order.items() if isinstance(use, Leaf)}
        self._last_old: dict[MapKey, int] = {}
        for k, propagation in enumerate(propagations):
            for rule in propagation.rules:
                for sibling in rule.siblings:
                    if self._position(sibling, k) > k:
                        self._last_old[storage.key(sibling)] = k

    def _position(self, node: Node, current: int) -> int:
        """The sibling's place among the uses of the changed relation; `current` if it does not change."""
        node = referred(node)
        if isinstance(node, StoredView):
            return current
        if isinstance(node, IndicatorLeaf):
            return self._order.get(node, current)
        return self._bases.get(node.label, current)

    def is_new(self, key: MapKey, at: int) -> bool:
        """Whether the map may hold its new contents from propagation `at` on."""
        return self._last_old.get(key, -1) < at

    def pending(self, rule: Rule, k: int) -> list[Node]:
        """Siblings whose new contents the rule wants while their map holds the old."""
        new = [sibling for sibling in rule.siblings if self._position(sibling, k) < k]
        return [sibling for sibling in new if not self.is_new(self._storage.key(sibling), k)]
