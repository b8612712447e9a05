// Euler tours of trees as sequences that can be cut, joined and searched in O(log n) expected time: treaps with parent
// pointers. An item is a vertex, or one of the two arcs of a tree edge.
#pragma once

#include <cstdint>
#include <vector>

#include "hash.hpp"

namespace ivme {

class EulerTours {
public:
    static constexpr uint8_t VERTEX = 1, LOOSE = 2, SOLID = 4;
    static constexpr uint32_t NONE = 0;

    explicit EulerTours(uint64_t seed) : random_(seed | 1) { clear(); }

    void clear() {
        nodes_.assign(1, Node{});
        free_.clear();
    }

    size_t bytes() const { return nodes_.capacity() * sizeof(Node) + free_.capacity() * 4; }

    uint32_t make(uint32_t item, uint8_t flags) {
        if (free_.empty()) {
            nodes_.emplace_back();
            free_.reserve(nodes_.capacity());
            free_.push_back(static_cast<uint32_t>(nodes_.size() - 1));
        }
        uint32_t x = free_.back();
        free_.pop_back();
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        nodes_[x] =
            Node{NONE, NONE, NONE, static_cast<uint32_t>(random_ >> 32), (flags & VERTEX) != 0, item, flags, flags};
        return x;
    }
    // Only for one that is alone in its sequence.
    void free(uint32_t x) { free_.push_back(x); }

    uint32_t item(uint32_t x) const { return nodes_[x].item; }
    uint8_t flags(uint32_t x) const { return nodes_[x].own; }
    // The number of vertices of the tree whose root this is.
    uint32_t vertices(uint32_t root) const { return nodes_[root].vertices; }

    uint32_t root(uint32_t x) const {
        while (nodes_[x].up) x = nodes_[x].up;
        return x;
    }

    void flag(uint32_t x, uint8_t flag, bool on) {
        nodes_[x].own = static_cast<uint8_t>(on ? nodes_[x].own | flag : nodes_[x].own & ~flag);
        for (; x; x = nodes_[x].up) {
            uint8_t before = nodes_[x].all;
            pull(x);
            if (nodes_[x].all == before) break;
        }
    }

    // Some item with the flag in the sequence whose root this is; NONE if there is none.
    uint32_t find(uint32_t x, uint8_t flag) const {
        if (!x || !(nodes_[x].all & flag)) return NONE;
        while (!(nodes_[x].own & flag)) {
            x = nodes_[nodes_[x].left].all & flag ? nodes_[x].left : nodes_[x].right;
        }
        return x;
    }

    // Joins the trees of two vertices by an edge whose arcs are given.
    void link(uint32_t u, uint32_t v, uint32_t there, uint32_t back) {
        uint32_t left = merge(reroot(u), there);
        merge(merge(left, reroot(v)), back);
    }

    // Takes the edge of two arcs out of its tree; the arcs are then alone.
    void cut(uint32_t there, uint32_t back) {
        auto [before, from] = split_before(there);
        merge(from, before);
        split_after(there);
        split_before(back);
        split_after(back);
    }

    template <class Visit>
    void each_vertex(uint32_t root, Visit visit) const {
        std::vector<uint32_t> stack;
        for (uint32_t x = root; x || !stack.empty();) {
            if (x) {
                stack.push_back(x);
                x = nodes_[x].left;
            } else {
                x = stack.back();
                stack.pop_back();
                if (nodes_[x].own & VERTEX) visit(nodes_[x].item);
                x = nodes_[x].right;
            }
        }
    }

private:
    struct Node {
        uint32_t up = NONE, left = NONE, right = NONE;
        uint32_t priority = 0;
        uint32_t vertices = 0;
        uint32_t item = NIL;
        uint8_t own = 0, all = 0;
    };

    void pull(uint32_t x) {
        Node& node = nodes_[x];
        const Node &left = nodes_[node.left], &right = nodes_[node.right];
        node.vertices = left.vertices + right.vertices + ((node.own & VERTEX) != 0);
        node.all = static_cast<uint8_t>(node.own | left.all | right.all);
    }

    uint32_t merge(uint32_t a, uint32_t b) {
        if (!a || !b) return a ? a : b;
        if (nodes_[a].priority > nodes_[b].priority) {
            uint32_t right = merge(nodes_[a].right, b);
            nodes_[a].right = right;
            nodes_[right].up = a;
            pull(a);
            return a;
        }
        uint32_t left = merge(a, nodes_[b].left);
        nodes_[b].left = left;
        nodes_[left].up = b;
        pull(b);
        return b;
    }

    std::pair<uint32_t, uint32_t> split_before(uint32_t x) {
        uint32_t left = nodes_[x].left;
        nodes_[x].left = NONE;
        pull(x);
        return climb(x, left, x);
    }

    std::pair<uint32_t, uint32_t> split_after(uint32_t x) {
        uint32_t right = nodes_[x].right;
        nodes_[x].right = NONE;
        pull(x);
        return climb(x, x, right);
    }

    std::pair<uint32_t, uint32_t> climb(uint32_t x, uint32_t left, uint32_t right) {
        uint32_t child = x, up = nodes_[x].up;
        if (left) nodes_[left].up = NONE;
        if (right) nodes_[right].up = NONE;
        while (up) {
            uint32_t next = nodes_[up].up;
            nodes_[up].up = NONE;
            if (nodes_[up].right == child) {
                nodes_[up].right = left;
                if (left) nodes_[left].up = up;
                pull(up);
                left = up;
            } else {
                nodes_[up].left = right;
                if (right) nodes_[right].up = up;
                pull(up);
                right = up;
            }
            child = up;
            up = next;
        }
        return {left, right};
    }

    uint32_t reroot(uint32_t x) {
        auto [left, right] = split_before(x);
        return merge(right, left);
    }

    std::vector<Node> nodes_;
    std::vector<uint32_t> free_;
    uint64_t random_;
};

}  // namespace ivme
