#include "closure_forest.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

namespace ivme {

using Tours = EulerTours;

void ForestClosure::grow(size_t nodes) {
    if (label_.size() < nodes) label_.resize(nodes, 0);
}

ForestClosure::Level& ForestClosure::level(uint32_t number) {
    while (levels_.size() <= number) levels_.emplace_back();
    Level& found = levels_[number];
    if (found.vertex.size() < graph_.capacity()) {
        found.loose.resize(graph_.capacity());
        found.vertex.resize(graph_.capacity(), Tours::NONE);
    }
    return found;
}

uint32_t ForestClosure::vertex(uint32_t number, uint32_t node) {
    uint32_t& item = level(number).vertex[node];
    if (item == Tours::NONE) item = tours_.make(node, Tours::VERTEX);
    return item;
}

void ForestClosure::update(const std::vector<uint32_t>& gone, const std::vector<uint32_t>& come) {
    for (uint32_t id : gone) erase(id);
    for (uint32_t id : come) {
        graph_.attach(id);
        insert(id);
    }
}

void ForestClosure::insert(uint32_t id) {
    if (members_.size() <= id) members_.resize(id + 1);
    uint32_t from = graph_.edge(id).from, to = graph_.edge(id).to;
    uint32_t a = vertex(0, from), b = vertex(0, to);
    members_[id] = Member{};
    if (from == to) {
        seed(from);
    } else if (tours_.root(a) == tours_.root(b)) {
        loosen(id, 0);
    } else {
        members_[id].tree = true;
        link(id, 0, true);
        seed(from);
        seed(to);
    }
}

void ForestClosure::erase(uint32_t id) {
    uint32_t from = graph_.edge(id).from, to = graph_.edge(id).to;
    Member& member = members_[id];
    if (from == to) {
        seed(from);
        return;
    }
    if (!member.tree) {
        unloosen(id);
        return;
    }
    for (auto [there, back] : member.arcs) {
        tours_.cut(there, back);
        tours_.free(there);
        tours_.free(back);
    }
    member.arcs.clear();
    if (replace(from, to, member.level)) return;
    seed(from);
    seed(to);
}

// Puts a tree edge into the forest of a level, which is the next of its arcs.
void ForestClosure::link(uint32_t id, uint32_t number, bool solid) {
    uint32_t u = vertex(number, graph_.edge(id).from), v = vertex(number, graph_.edge(id).to);
    uint32_t there = tours_.make(id, solid ? Tours::SOLID : uint8_t{0}), back = tours_.make(id, 0);
    members_[id].arcs.push_back({there, back});
    tours_.link(u, v, there, back);
    ++operations;
}

void ForestClosure::loosen(uint32_t id, uint32_t number) {
    uint32_t ends[2] = {graph_.edge(id).from, graph_.edge(id).to};
    uint32_t items[2] = {vertex(number, ends[0]), vertex(number, ends[1])};
    uint32_t* places[2] = {&members_[id].at_from, &members_[id].at_to};
    members_[id].level = number;
    for (int i = 0; i < 2; ++i) {
        auto& list = levels_[number].loose[ends[i]];
        list.push_back(id);
        *places[i] = static_cast<uint32_t>(list.size() - 1);
        if (list.size() == 1) tours_.flag(items[i], Tours::LOOSE, true);
    }
}

void ForestClosure::unloosen(uint32_t id) {
    uint32_t number = members_[id].level;
    uint32_t ends[2] = {graph_.edge(id).from, graph_.edge(id).to};
    uint32_t places[2] = {members_[id].at_from, members_[id].at_to};
    for (int i = 0; i < 2; ++i) {
        auto& list = levels_[number].loose[ends[i]];
        uint32_t last = list.back();
        list[places[i]] = last;
        (graph_.edge(last).from == ends[i] ? members_[last].at_from : members_[last].at_to) = places[i];
        list.pop_back();
        if (list.empty()) tours_.flag(levels_[number].vertex[ends[i]], Tours::LOOSE, false);
    }
    members_[id].at_from = members_[id].at_to = NIL;
}

bool ForestClosure::replace(uint32_t from, uint32_t to, uint32_t top) {
    for (uint32_t number = top + 1; number-- > 0;) {
        uint32_t a = tours_.root(vertex(number, from)), b = tours_.root(vertex(number, to));
        if (replace_at(number, tours_.vertices(a) < tours_.vertices(b) ? a : b)) return true;
    }
    return false;
}

// Looks for an edge of this level that leads out of the smaller tree. The tree's own edges of this level rise.
bool ForestClosure::replace_at(uint32_t number, uint32_t small) {
    while (uint32_t arc = tours_.find(small, Tours::SOLID)) {
        uint32_t id = tours_.item(arc);
        tours_.flag(arc, Tours::SOLID, false);
        members_[id].level = number + 1;
        link(id, number + 1, true);
    }
    while (uint32_t item = tours_.find(small, Tours::LOOSE)) {
        uint32_t node = tours_.item(item);
        while (!levels_[number].loose[node].empty()) {
            uint32_t id = levels_[number].loose[node].back();
            uint32_t other = graph_.edge(id).from == node ? graph_.edge(id).to : graph_.edge(id).from;
            ++operations;
            unloosen(id);
            if (tours_.root(vertex_at(number, other)) == small) {
                loosen(id, number + 1);
                continue;
            }
            members_[id].tree = true;
            members_[id].level = number;
            for (uint32_t below = 0; below <= number; ++below) link(id, below, below == number);
            return true;
        }
    }
    return false;
}

void ForestClosure::rebuild() {
    tours_.clear();
    levels_.clear();
    members_.clear();
    bool follows = followed_;
    followed_ = false;
    for (uint32_t node = 0; node < graph_.capacity(); ++node) {
        for (uint32_t id : graph_.out(node)) insert(id);
    }
    followed_ = follows;
    grow(graph_.capacity());
    followed_changed();
}

void ForestClosure::forget(uint32_t node) {
    for (Level& each : levels_) {
        if (node >= each.vertex.size() || each.vertex[node] == Tours::NONE) continue;
        tours_.free(each.vertex[node]);
        each.vertex[node] = Tours::NONE;
    }
}

bool ForestClosure::leads(uint32_t from, uint32_t to) const {
    if (from == to) return graph_.used(from);
    uint32_t a = vertex_at(0, from), b = vertex_at(0, to);
    return a != Tours::NONE && b != Tours::NONE && tours_.root(a) == tours_.root(b);
}

size_t ForestClosure::fan(uint32_t node) const {
    return graph_.used(node) ? tours_.vertices(tours_.root(vertex_at(0, node))) : 0;
}

void ForestClosure::targets(uint32_t node, std::vector<uint32_t>& nodes) const {
    nodes.clear();
    if (!graph_.used(node)) return;
    tours_.each_vertex(tours_.root(vertex_at(0, node)), [&](uint32_t other) { nodes.push_back(other); });
}

// The nodes whose component may have changed, with the component before and after the transaction (0 for none). Every
// piece of a component that was torn holds an end of the edge that tore it off, so the trees of the seeds are all.
std::vector<ForestClosure::Placed> ForestClosure::placed() const {
    std::vector<Placed> found;
    std::unordered_set<uint32_t> trees, alone;
    for (uint32_t node : seeds_) {
        if (!graph_.used(node)) {
            if (alone.insert(node).second) found.push_back({label_[node], 0, node});
            continue;
        }
        uint32_t root = tours_.root(vertex_at(0, node));
        if (!trees.insert(root).second) continue;
        tours_.each_vertex(root, [&](uint32_t other) { found.push_back({label_[other], root, other}); });
    }
    return found;
}

namespace {

// All pairs of nodes that are together by `whole` and not by `part`; a node is not together with itself in part 0.
template <class Placed, class Whole, class Part, class Emit>
void parted(std::vector<Placed>& nodes, Whole whole, Part part, Emit emit) {
    std::sort(nodes.begin(), nodes.end(), [&](const Placed& a, const Placed& b) {
        return whole(a) != whole(b) ? whole(a) < whole(b) : part(a) < part(b);
    });
    for (size_t start = 0, end; start < nodes.size(); start = end) {
        for (end = start; end < nodes.size() && whole(nodes[end]) == whole(nodes[start]); ++end) {}
        if (!whole(nodes[start])) continue;
        for (size_t first = start, last; first < end; first = last) {
            for (last = first; last < end && part(nodes[last]) == part(nodes[first]); ++last) {}
            bool nowhere = !part(nodes[first]);
            for (size_t i = first; i < last; ++i) {
                for (size_t j = start; j < end; ++j) {
                    if (nowhere || j < first || j >= last) emit(nodes[i].node, nodes[j].node);
                }
            }
        }
    }
}

}  // namespace

void ForestClosure::changed(ClosureDelta& delta) const {
    auto nodes = placed();
    auto before = [](const Placed& each) { return each.before; };
    auto after = [](const Placed& each) { return each.after; };
    parted(nodes, before, after, [&](uint32_t a, uint32_t b) { delta.push(graph_.code(a), graph_.code(b), -1); });
    parted(nodes, after, before, [&](uint32_t a, uint32_t b) { delta.push(graph_.code(a), graph_.code(b), 1); });
}

void ForestClosure::settle() {
    if (!followed_) return;
    std::unordered_map<uint64_t, uint64_t> fresh;
    for (const Placed& each : placed()) {
        uint64_t& label = fresh[each.after];
        if (!label && each.after) label = ++labels_;
        label_[each.node] = label;
    }
    seeds_.clear();
}

void ForestClosure::followed_changed() {
    seeds_.clear();
    std::fill(label_.begin(), label_.end(), 0);
    if (!followed_) return;
    for (uint32_t node : sources()) seeds_.push_back(node);
    settle();
}

size_t ForestClosure::bytes() const {
    size_t total = graph_.bytes() + tours_.bytes() + label_.capacity() * 8;
    for (const Level& each : levels_) {
        total += each.vertex.capacity() * 4 + each.loose.capacity() * sizeof(std::vector<uint32_t>);
        for (const auto& list : each.loose) total += list.capacity() * 4;
    }
    for (const Member& each : members_) total += sizeof(Member) + each.arcs.capacity() * 8;
    return total;
}

size_t ForestClosure::components() const {
    std::unordered_set<uint64_t> found;
    for (uint32_t node : sources()) found.insert(group(node));
    return found.size();
}

uint64_t ForestClosure::pairs() const {
    uint64_t total = 0;
    for (uint32_t node : sources()) total += fan(node);
    return total;
}

void ForestClosure::check() const {
    for (uint32_t node = 0; node < graph_.capacity(); ++node) {
        for (uint32_t id : graph_.out(node)) {
            const GraphEdge& edge = graph_.edge(id);
            const Member& member = members_[id];
            if (!leads(edge.from, edge.to)) throw std::logic_error("the ends of an edge are not connected");
            if (edge.from == edge.to) continue;
            if (member.tree != (member.arcs.size() == member.level + 1)) {
                throw std::logic_error("a tree edge is not in the forests of its levels");
            }
            uint32_t a = vertex_at(member.level, edge.from), b = vertex_at(member.level, edge.to);
            if (tours_.root(a) != tours_.root(b)) throw std::logic_error("an edge's level has not its tree");
            if (tours_.vertices(tours_.root(a)) << member.level > 2 * graph_.capacity()) {
                throw std::logic_error("a tree is too large for its level");
            }
        }
    }
}

}  // namespace ivme
