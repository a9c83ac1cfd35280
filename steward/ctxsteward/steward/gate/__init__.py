"""The eval gate: champion and challenger replay the same cases, and no guard may fall by more than its margin."""
