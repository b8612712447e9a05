// Keys that belong to a key, for the rows that come before the one they join with.
#pragma once

#include <algorithm>
#include <vector>

#include "maps.hpp"

template <class Item>
class Lists {
public:
    void add(int64_t key, const Item& item) { lists_[key].push_back(item); }

    void take(int64_t key, const Item& item) {
        std::vector<Item>* list = lists_.find(key);
        auto found = std::find(list->begin(), list->end(), item);
        *found = list->back();
        list->pop_back();
        if (list->empty()) lists_.erase(key);
    }

    void change(int64_t key, const Item& item, bool comes) { comes ? add(key, item) : take(key, item); }

    template <class Visit>
    void each(int64_t key, Visit visit) {
        if (std::vector<Item>* list = lists_.find(key)) {
            for (const Item& item : *list) visit(item);
        }
    }

private:
    FlatMap<int64_t, std::vector<Item>> lists_;
};
