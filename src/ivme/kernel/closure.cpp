#include "closure.hpp"

#include <algorithm>
#include <unordered_map>

#include "closure_digraph.hpp"
#include "closure_forest.hpp"

namespace ivme {

void Closure::change(const int64_t* from, const int64_t* to, const int64_t* weights, size_t n) {
    if (broken_ || !touched_.empty()) throw std::logic_error("the closure's last transaction is not over");
    ++version_;
    broken_ = true;
    for (size_t i = 0; i < n; ++i) {
        if (undirected_ && (from[i] == NULL_CODE || to[i] == NULL_CODE)) continue;
        uint32_t a = graph_.make_node(from[i], false), b = graph_.make_node(to[i], true);
        grow(graph_.capacity());
        uint32_t id = graph_.make_edge(a, b);
        touched_.emplace_back(id, graph_.edge(id).count);
        graph_.add(id, weights[i]);
    }
    // An edge that came up several times is as it was before the first of them.
    std::stable_sort(touched_.begin(), touched_.end(), [](auto& a, auto& b) { return a.first < b.first; });
    touched_.erase(std::unique(touched_.begin(), touched_.end(), [](auto& a, auto& b) { return a.first == b.first; }),
                   touched_.end());
    for (auto [id, before] : touched_) {
        if (graph_.edge(id).count < 0) throw std::invalid_argument("an edge is taken away more often than it is there");
    }
    apply(touched_);
    broken_ = false;
}

void Closure::apply(const std::vector<std::pair<uint32_t, int64_t>>& touched) {
    std::vector<uint32_t> gone, come;
    for (auto [id, before] : touched) {
        int64_t now = graph_.edge(id).count;
        if (before > 0 && now == 0) gone.push_back(id);
        if (before == 0 && now > 0) come.push_back(id);
    }
    for (uint32_t id : gone) graph_.detach(id);
    operations += gone.size() + come.size();
    update(gone, come);
}

void Closure::commit() {
    if (broken_) throw std::logic_error("the closure's transaction failed; roll it back");
    settle();
    forget_unused();
}

void Closure::roll_back() {
    if (touched_.empty() && !broken_) return;
    ++version_;
    if (broken_) {
        for (auto at = touched_.rbegin(); at != touched_.rend(); ++at) graph_.set_count(at->first, at->second);
        graph_.attach_all();
        rebuild();
        broken_ = false;
    } else {
        std::vector<std::pair<uint32_t, int64_t>> back;
        for (auto [id, before] : touched_) {
            back.emplace_back(id, graph_.edge(id).count);
            graph_.set_count(id, before);
        }
        apply(back);
    }
    settle();
    forget_unused();
}

void Closure::forget_unused() {
    for (auto [id, before] : touched_) {
        if (graph_.edge(id).from == NIL || graph_.edge(id).count) continue;
        uint32_t ends[2] = {graph_.edge(id).from, graph_.edge(id).to};
        graph_.free_edge(id);
        for (uint32_t node : ends) {
            if (!graph_.alive(node) || graph_.used(node)) continue;
            forget(node);
            graph_.free_node(node);
        }
    }
    touched_.clear();
}

void Closure::follow(bool on) {
    followed_ = on;
    followed_changed();
}

std::vector<uint32_t> Closure::sources() const {
    std::vector<std::pair<uint64_t, uint32_t>> grouped;
    for (uint32_t node = 0; node < graph_.capacity(); ++node) {
        if (graph_.alive(node) && graph_.used(node)) grouped.emplace_back(group(node), node);
    }
    std::sort(grouped.begin(), grouped.end());
    std::vector<uint32_t> nodes;
    for (auto [_, node] : grouped) nodes.push_back(node);
    return nodes;
}

std::vector<int64_t> Closure::path(int64_t from, int64_t to) const {
    uint32_t a = graph_.find(from, false), b = graph_.find(to, true);
    if (a == NIL || b == NIL || !leads(a, b)) return {};
    return search(a, b, true);
}

// Breadth first; guided, it looks only at nodes that lead to the goal.
std::vector<int64_t> Closure::search(uint32_t from, uint32_t to, bool guided) const {
    std::unordered_map<uint32_t, uint32_t> before;
    std::vector<uint32_t> queue{from};
    bool found = false;
    for (size_t at = 0; at < queue.size() && !found; ++at) {
        uint32_t node = queue[at];
        neighbours(node, [&](uint32_t next) {
            if (found || before.contains(next)) return;
            if (next != to && (next == from || (guided && !leads(next, to)))) return;
            before[next] = node;
            found = next == to;
            queue.push_back(next);
        });
    }
    std::vector<int64_t> codes;
    if (!found) return codes;
    codes.push_back(graph_.code(to));
    for (uint32_t node = before[to];; node = before[node]) {
        codes.push_back(graph_.code(node));
        if (node == from) break;
    }
    std::reverse(codes.begin(), codes.end());
    return codes;
}

std::unique_ptr<Closure> make_closure(const std::string& kind, uint64_t seed) {
    if (kind == "digraph") return std::make_unique<DigraphClosure>(seed, false);
    if (kind == "acyclic") return std::make_unique<DigraphClosure>(seed, true);
    if (kind == "undirected") return std::make_unique<ForestClosure>(seed);
    throw std::invalid_argument("a closure is of a digraph, or of an acyclic or undirected graph");
}

}  // namespace ivme
