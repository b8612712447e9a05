#include "closure_digraph.hpp"

#include <algorithm>
#include <stdexcept>

namespace ivme {

void DigraphClosure::grow(size_t nodes) {
    while (component_.size() < nodes) {
        uint32_t node = static_cast<uint32_t>(component_.size());
        component_.push_back(NIL);
        seen_.push_back(0);
        seen_back_.push_back(0);
        index_.push_back(0);
        low_.push_back(0);
        uint32_t part = make_part();
        parts_[part].members.assign(1, node);
        component_[node] = part;
    }
}

uint32_t DigraphClosure::make_part() {
    if (free_parts_.empty()) {
        parts_.emplace_back();
        marked_.push_back(0);
        free_parts_.reserve(parts_.capacity());
        free_parts_.push_back(static_cast<uint32_t>(parts_.size() - 1));
    }
    auto row = std::make_shared<Row>();
    uint32_t part = free_parts_.back();
    free_parts_.pop_back();
    parts_[part] = Part{};
    parts_[part].row = std::move(row);
    return part;
}

void DigraphClosure::drop_part(uint32_t part) {
    parts_[part] = Part{};
    parts_[part].row = empty_;
    free_parts_.push_back(part);
}

// A place whose node is gone keeps a part of its own, which is empty: the next node there finds it ready.
void DigraphClosure::forget(uint32_t node) {
    Part& part = parts_[component_[node]];
    if (part.members.size() != 1 || part.row->size()) throw std::logic_error("a node without edges is in no cycle");
    part.cyclic = false;
}

// The row of a part, to be changed; while the closure is followed, the row before the transaction is kept.
Row& DigraphClosure::writable(uint32_t part) {
    touch(part);
    std::shared_ptr<Row>& row = parts_[part].row;
    if (row.use_count() > 1) row = std::make_shared<Row>(*row);
    return *row;
}

void DigraphClosure::touch(uint32_t part) {
    if (!followed_) return;
    for (uint32_t node : parts_[part].members) before_.try_emplace(node, parts_[part].row);
}

void DigraphClosure::update(const std::vector<uint32_t>& gone, const std::vector<uint32_t>& come) {
    if ((gone.size() + come.size()) * 4 > graph_.edges() + 64) {
        for (uint32_t id : come) graph_.attach(id);
        rebuild();
        return;
    }
    if (!gone.empty()) remove(gone);
    for (uint32_t id : come) {
        graph_.attach(id);
        insert(graph_.edge(id).from, graph_.edge(id).to);
    }
}

void DigraphClosure::insert(uint32_t from, uint32_t to) {
    uint32_t start = component_[from], end = component_[to];
    if (row(start).test(to)) return;
    if (from == to || row(end).test(from)) {
        if (acyclic_) {
            std::vector<int64_t> codes = search(to, from, true);
            if (from == to) codes = {graph_.code(from), graph_.code(from)};
            if (from != to) codes.push_back(graph_.code(to));
            throw Cycle(codes);
        }
        uint32_t part = merge(from, to);
        spread(part, row(part), to);
        return;
    }
    Row added = row(end);
    added.set(to);
    writable(start).unite(added);
    ++operations;
    spread(start, added, to);
}

// All parts that lead to this one and not to the node yet take in the row, which has the node.
void DigraphClosure::spread(uint32_t part, const Row& added, uint32_t to) {
    std::vector<uint32_t> stack{part};
    while (!stack.empty()) {
        uint32_t at = stack.back();
        stack.pop_back();
        for (uint32_t node : parts_[at].members) {
            for (uint32_t id : graph_.in(node)) {
                uint32_t other = component_[graph_.edge(id).from];
                ++operations;
                if (other == at || row(other).test(to)) continue;
                writable(other).unite(added);
                stack.push_back(other);
            }
        }
    }
}

// The edge (from, to) closes a cycle: the parts on the ways from `to` to `from` become one, which leads to what `to`
// leads to, and to `to`.
uint32_t DigraphClosure::merge(uint32_t from, uint32_t to) {
    uint32_t goal = component_[to];
    uint64_t mark = stamp();
    std::vector<uint32_t> between{component_[from]};
    marked_[component_[from]] = mark;
    for (size_t at = 0; at < between.size(); ++at) {
        for (uint32_t node : parts_[between[at]].members) {
            for (uint32_t id : graph_.in(node)) {
                uint32_t other = component_[graph_.edge(id).from];
                ++operations;
                if (marked_[other] == mark) continue;
                if (other != goal && !row(goal).test(parts_[other].members[0])) continue;
                marked_[other] = mark;
                between.push_back(other);
            }
        }
    }
    uint32_t kept = *std::max_element(between.begin(), between.end(), [&](uint32_t a, uint32_t b) {
        return parts_[a].members.size() < parts_[b].members.size();
    });
    for (uint32_t part : between) touch(part);
    auto merged = std::make_shared<Row>(row(goal));
    merged->set(to);
    for (uint32_t part : between) {
        if (part == kept) continue;
        for (uint32_t node : parts_[part].members) {
            component_[node] = kept;
            parts_[kept].members.push_back(node);
        }
        drop_part(part);
    }
    parts_[kept].row = std::move(merged);
    parts_[kept].cyclic = true;
    return kept;
}

void DigraphClosure::remove(const std::vector<uint32_t>& gone) {
    std::vector<Suspect> suspects;
    uint64_t torn = stamp();
    for (uint32_t id : gone) {
        uint32_t from = graph_.edge(id).from, to = graph_.edge(id).to, part = component_[from];
        if (part != component_[to] || marked_[part] == torn) continue;
        if (parts_[part].members.size() == 1) {
            parts_[part].rank = rank(parts_[part]);
            parts_[part].cyclic = false;
            suspect(part, suspects);
        } else if (!connected(from, to)) {
            marked_[part] = torn;
        }
    }
    for (uint32_t id : gone) {
        uint32_t part = component_[graph_.edge(id).from];
        if (part == component_[graph_.edge(id).to] && marked_[part] == torn) split(part, suspects);
    }
    for (uint32_t id : gone) {
        uint32_t from = component_[graph_.edge(id).from], to = graph_.edge(id).to;
        if (from == component_[to] || parts_[from].dirty) continue;
        const auto& in = graph_.in(to);
        operations += in.size();
        if (std::any_of(in.begin(), in.end(), [&](uint32_t e) { return component_[graph_.edge(e).from] == from; })) {
            continue;
        }
        suspect(from, suspects);
    }
    clear_suspects(suspects);
}

void DigraphClosure::suspect(uint32_t part, std::vector<Suspect>& suspects, uint32_t order) {
    if (parts_[part].dirty) return;
    parts_[part].dirty = true;
    uint64_t known = parts_[part].rank ? parts_[part].rank : rank(parts_[part]);
    suspects.push_back({known, order, part});
    std::push_heap(suspects.begin(), suspects.end());
}

void DigraphClosure::clear_suspects(std::vector<Suspect>& suspects) {
    while (!suspects.empty()) {
        std::pop_heap(suspects.begin(), suspects.end());
        uint32_t part = suspects.back().part;
        suspects.pop_back();
        Row fresh = computed(part);
        parts_[part].dirty = false;
        parts_[part].rank = 0;
        if (fresh.equals(row(part))) continue;
        touch(part);
        parts_[part].row = std::make_shared<Row>(std::move(fresh));
        for (uint32_t node : parts_[part].members) {
            for (uint32_t id : graph_.in(node)) {
                uint32_t other = component_[graph_.edge(id).from];
                ++operations;
                if (other != part) suspect(other, suspects);
            }
        }
    }
}

// The row of a part from those of the parts that its edges lead to, large ones first: a part whose node is in the row
// already adds nothing, since rows are closed.
Row DigraphClosure::computed(uint32_t part) {
    std::vector<uint32_t> next;
    uint64_t mark = stamp();
    marked_[part] = mark;
    for (uint32_t node : parts_[part].members) {
        for (uint32_t id : graph_.out(node)) {
            uint32_t other = component_[graph_.edge(id).to];
            ++operations;
            if (marked_[other] == mark) continue;
            marked_[other] = mark;
            next.push_back(other);
        }
    }
    std::sort(next.begin(), next.end(), [&](uint32_t a, uint32_t b) { return row(a).size() > row(b).size(); });
    Row made;
    for (uint32_t other : next) {
        if (made.test(parts_[other].members[0])) continue;
        made.unite(row(other));
        if (!parts_[other].cyclic) made.set(parts_[other].members[0]);
        ++operations;
    }
    if (parts_[part].cyclic) {
        for (uint32_t node : parts_[part].members) made.set(node);
    }
    return made;
}

void DigraphClosure::rebuild() {
    std::vector<uint32_t> nodes;
    grow(graph_.capacity());
    for (uint32_t node = 0; node < graph_.capacity(); ++node) nodes.push_back(node);
    if (followed_) {
        for (uint32_t node : nodes) {
            if (component_[node] < parts_.size()) before_.try_emplace(node, parts_[component_[node]].row);
        }
    }
    auto pieces = tarjan(nodes, NIL);
    parts_.clear();
    free_parts_.clear();
    marked_.clear();
    for (auto& piece : pieces) {
        uint32_t part = make_part();
        for (uint32_t node : piece) component_[node] = part;
        parts_[part].members = std::move(piece);
    }
    std::vector<uint32_t> order;
    for (const auto& part : parts_) order.push_back(static_cast<uint32_t>(&part - parts_.data()));
    for (uint32_t part : order) {
        Part& made = parts_[part];
        made.cyclic = made.members.size() > 1 || has_loop(made.members[0]);
        if (made.cyclic && acyclic_) {
            uint32_t node = made.members[0];
            auto codes = search(node, node, false);
            throw Cycle(codes);
        }
        *made.row = computed(part);
    }
}

void DigraphClosure::changed(ClosureDelta& delta) const {
    for (const auto& [node, old] : before_) {
        const Row& now = row(component_[node]);
        int64_t code = graph_.code(node);
        now.each_not_in(*old, [&](uint32_t to) { delta.push(code, graph_.code(to), 1); });
        old->each_not_in(now, [&](uint32_t to) { delta.push(code, graph_.code(to), -1); });
    }
}

void DigraphClosure::targets(uint32_t node, std::vector<uint32_t>& nodes) const {
    const Row& all = row(component_[node]);
    nodes.clear();
    nodes.reserve(all.size());
    all.each([&](uint32_t to) { nodes.push_back(to); });
}

size_t DigraphClosure::bytes() const {
    size_t total = graph_.bytes() + component_.capacity() * 24;
    for (const Part& part : parts_) total += sizeof(Part) + part.members.capacity() * 4 + part.row->bytes();
    return total;
}

size_t DigraphClosure::components() const {
    return static_cast<size_t>(std::count_if(parts_.begin(), parts_.end(), [&](const Part& part) {
        return !part.members.empty() && graph_.used(part.members[0]);
    }));
}

uint64_t DigraphClosure::pairs() const {
    uint64_t total = 0;
    for (const Part& part : parts_) total += part.members.size() * part.row->size();
    return total;
}

void DigraphClosure::check() const {
    for (uint32_t node = 0; node < graph_.capacity(); ++node) {
        const auto& members = parts_[component_[node]].members;
        if (std::find(members.begin(), members.end(), node) == members.end()) {
            throw std::logic_error("a component does not have its node");
        }
        for (uint32_t id : graph_.out(node)) {
            uint32_t to = graph_.edge(id).to;
            if (!leads(node, to)) throw std::logic_error("an edge is not in the closure");
            row(component_[to]).each([&](uint32_t far) {
                if (!leads(node, far)) throw std::logic_error("the closure is not transitive");
            });
        }
        for (uint32_t member : members) {
            if (members.size() > 1 && !leads(node, member)) throw std::logic_error("a component is torn");
        }
    }
}

}  // namespace ivme
