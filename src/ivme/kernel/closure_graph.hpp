// The edges of a closure as a bag: nodes by code, edges by their ends with their multiplicity, neighbours of a node.
//
// NULL joins with nothing, itself included: as the start of an edge and as its end it is two different nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "errors.hpp"
#include "hash.hpp"
#include "int128.hpp"
#include "sorted.hpp"

namespace ivme {

struct GraphEdge {
    uint32_t from = NIL, to = NIL;
    uint32_t at_from = NIL, at_to = NIL;  // places in `out(from)` and `in(to)`; NIL while it is not attached
    int64_t count = 0;
};

class Graph {
public:
    Graph(Seed seed, bool undirected) : seed_(seed), undirected_(undirected) {}

    size_t capacity() const { return nodes_.size(); }
    size_t nodes() const { return node_table_.size(); }
    size_t edges() const { return attached_; }
    int64_t code(uint32_t node) const { return nodes_[node].code; }
    const GraphEdge& edge(uint32_t id) const { return edges_[id]; }
    const std::vector<uint32_t>& out(uint32_t node) const { return nodes_[node].out; }
    const std::vector<uint32_t>& in(uint32_t node) const { return nodes_[node].in; }
    bool used(uint32_t node) const { return !nodes_[node].out.empty() || !nodes_[node].in.empty(); }

    size_t bytes() const {
        size_t total = node_table_.bytes() + edge_table_.bytes() + edges_.capacity() * sizeof(GraphEdge);
        for (const Node& node : nodes_) total += sizeof(Node) + (node.out.capacity() + node.in.capacity()) * 4;
        return total;
    }

    // The node of a code as the start or as the end of an edge; NIL if there is none.
    uint32_t find(int64_t code, bool end) const {
        int64_t key[2] = {code, code == NULL_CODE && end};
        return node_table_.find(seed_.tag(key, 2),
                                [&](uint32_t id) { return nodes_[id].code == key[0] && nodes_[id].end == key[1]; });
    }

    uint32_t find_edge(uint32_t from, uint32_t to) const {
        if (undirected_ && from > to) std::swap(from, to);
        int64_t key[2] = {from, to};
        return edge_table_.find(seed_.tag(key, 2),
                                [&](uint32_t id) { return edges_[id].from == from && edges_[id].to == to; });
    }

    uint32_t make_node(int64_t code, bool end) {
        uint32_t found = find(code, end);
        if (found != NIL) return found;
        node_table_.reserve_one();
        found = free_nodes_.empty() ? static_cast<uint32_t>(nodes_.size()) : free_nodes_.back();
        if (free_nodes_.empty()) {
            nodes_.emplace_back();
            free_nodes_.reserve(nodes_.capacity());
        } else {
            free_nodes_.pop_back();
        }
        int64_t key[2] = {code, code == NULL_CODE && end};
        nodes_[found].code = key[0];
        nodes_[found].end = key[1];
        node_table_.insert(seed_.tag(key, 2), found);
        return found;
    }

    uint32_t make_edge(uint32_t from, uint32_t to) {
        uint32_t found = find_edge(from, to);
        if (found != NIL) return found;
        if (undirected_ && from > to) std::swap(from, to);
        edge_table_.reserve_one();
        found = free_edges_.empty() ? static_cast<uint32_t>(edges_.size()) : free_edges_.back();
        if (free_edges_.empty()) {
            edges_.emplace_back();
            free_edges_.reserve(edges_.capacity());
        } else {
            free_edges_.pop_back();
        }
        edges_[found] = GraphEdge{from, to};
        int64_t key[2] = {from, to};
        edge_table_.insert(seed_.tag(key, 2), found);
        return found;
    }

    // Changes the multiplicity of an edge; what it was.
    int64_t add(uint32_t id, int64_t weight) {
        int64_t before = edges_[id].count;
        if (add_overflows(before, weight, &edges_[id].count)) throw Overflow();
        return before;
    }

    void attach(uint32_t id) {
        GraphEdge& edge = edges_[id];
        nodes_[edge.from].out.push_back(id);
        nodes_[edge.to].in.push_back(id);
        edge.at_from = static_cast<uint32_t>(nodes_[edge.from].out.size() - 1);
        edge.at_to = static_cast<uint32_t>(nodes_[edge.to].in.size() - 1);
        ++attached_;
    }

    void detach(uint32_t id) {
        GraphEdge& edge = edges_[id];
        auto& out = nodes_[edge.from].out;
        edges_[out.back()].at_from = edge.at_from;
        out[edge.at_from] = out.back();
        out.pop_back();
        auto& in = nodes_[edge.to].in;
        edges_[in.back()].at_to = edge.at_to;
        in[edge.at_to] = in.back();
        in.pop_back();
        edge.at_from = edge.at_to = NIL;
        --attached_;
    }

    void set_count(uint32_t id, int64_t count) { edges_[id].count = count; }

    // Attaches just the edges that are there, whatever was attached before: for going back from a failure.
    void attach_all() {
        for (Node& node : nodes_) {
            node.out.clear();
            node.in.clear();
        }
        attached_ = 0;
        for (uint32_t id = 0; id < edges_.size(); ++id) {
            edges_[id].at_from = edges_[id].at_to = NIL;
            if (edges_[id].count > 0) attach(id);
        }
    }

    // Forgets an edge whose multiplicity is zero.
    void free_edge(uint32_t id) {
        int64_t key[2] = {edges_[id].from, edges_[id].to};
        edge_table_.erase(seed_.tag(key, 2), id);
        edges_[id] = GraphEdge{};
        free_edges_.push_back(id);
    }

    void free_node(uint32_t id) {
        int64_t key[2] = {nodes_[id].code, nodes_[id].end};
        node_table_.erase(seed_.tag(key, 2), id);
        nodes_[id].end = -1;
        free_nodes_.push_back(id);
    }

    bool alive(uint32_t id) const { return nodes_[id].end >= 0; }

private:
    struct Node {
        int64_t code = 0;
        int64_t end = -1;  // 1 for NULL as the end of an edge, 0 for all others, -1 for a free place
        std::vector<uint32_t> out, in;
    };

    Seed seed_;
    bool undirected_;
    std::vector<Node> nodes_;
    std::vector<GraphEdge> edges_;
    std::vector<uint32_t> free_nodes_, free_edges_;
    IdTable node_table_, edge_table_;
    size_t attached_ = 0;
};

}  // namespace ivme
