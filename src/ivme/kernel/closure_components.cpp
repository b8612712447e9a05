// Strongly connected components of a digraph's closure: whether one has fallen apart, and into what.
#include <algorithm>

#include "closure_digraph.hpp"

namespace ivme {

// Whether a way is left inside their component, looked for from both ends at once.
bool DigraphClosure::connected(uint32_t from, uint32_t to) {
    uint32_t part = component_[from];
    uint64_t mark = stamp();
    std::vector<uint32_t> ahead{from}, back{to};
    seen_[from] = seen_back_[to] = mark;
    size_t a = 0, b = 0;
    while (a < ahead.size() && b < back.size()) {
        uint32_t node = ahead[a++];
        for (uint32_t id : graph_.out(node)) {
            uint32_t next = graph_.edge(id).to;
            ++operations;
            if (component_[next] != part || seen_[next] == mark) continue;
            if (seen_back_[next] == mark) return true;
            seen_[next] = mark;
            ahead.push_back(next);
        }
        node = back[b++];
        for (uint32_t id : graph_.in(node)) {
            uint32_t next = graph_.edge(id).from;
            ++operations;
            if (component_[next] != part || seen_back_[next] == mark) continue;
            if (seen_[next] == mark) return true;
            seen_back_[next] = mark;
            back.push_back(next);
        }
    }
    return false;
}

void DigraphClosure::split(uint32_t part, std::vector<Suspect>& suspects) {
    touch(part);
    marked_[part] = 0;
    uint64_t old_rank = rank(parts_[part]);
    std::shared_ptr<Row> old_row = parts_[part].row;
    std::vector<uint32_t> nodes = std::move(parts_[part].members);
    auto pieces = tarjan(nodes, part);
    uint32_t order = 0;
    drop_part(part);
    for (auto& piece : pieces) {
        uint32_t made = make_part();
        for (uint32_t node : piece) component_[node] = made;
        parts_[made].cyclic = piece.size() > 1 || has_loop(piece[0]);
        parts_[made].members = std::move(piece);
        parts_[made].row = old_row;
        parts_[made].rank = old_rank;
        suspect(made, suspects, ++order);
    }
}

std::vector<std::vector<uint32_t>> DigraphClosure::tarjan(const std::vector<uint32_t>& nodes, uint32_t within) {
    struct Frame {
        uint32_t node;
        size_t edge;
    };
    std::vector<std::vector<uint32_t>> found;
    std::vector<uint32_t> stack;
    std::vector<Frame> frames;
    uint64_t visited = stamp(), done = stamp();
    uint32_t next = 0;
    for (uint32_t root : nodes) {
        if (seen_[root] == visited || seen_[root] == done) continue;
        frames.push_back({root, 0});
        while (!frames.empty()) {
            Frame& frame = frames.back();
            uint32_t node = frame.node;
            if (frame.edge == 0 && seen_[node] != visited) {
                seen_[node] = visited;
                index_[node] = low_[node] = ++next;
                stack.push_back(node);
            }
            const auto& out = graph_.out(node);
            if (frame.edge < out.size()) {
                uint32_t to = graph_.edge(out[frame.edge++]).to;
                ++operations;
                if ((within != NIL && component_[to] != within) || seen_[to] == done) continue;
                if (seen_[to] == visited) {
                    low_[node] = std::min(low_[node], index_[to]);
                } else {
                    frames.push_back({to, 0});
                }
                continue;
            }
            frames.pop_back();
            if (!frames.empty()) low_[frames.back().node] = std::min(low_[frames.back().node], low_[node]);
            if (low_[node] != index_[node]) continue;
            found.emplace_back();
            uint32_t member;
            do {
                member = stack.back();
                stack.pop_back();
                seen_[member] = done;
                found.back().push_back(member);
            } while (member != node);
        }
    }
    return found;
}

bool DigraphClosure::has_loop(uint32_t node) const {
    uint32_t id = graph_.find_edge(node, node);
    return id != NIL && graph_.edge(id).at_from != NIL;
}

}  // namespace ivme
