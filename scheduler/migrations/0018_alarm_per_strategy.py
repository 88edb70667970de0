from django.db import migrations, models


class Migration(migrations.Migration):
    """A cluster may have an open alarm of each strategy: one must not hide the other."""

    dependencies = [
        ("scheduler", "0017_wish_for_one_network_card"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="strategyalarm",
            name="strategy_alarm_one_open_per_cluster",
        ),
        migrations.AddConstraint(
            model_name="strategyalarm",
            constraint=models.UniqueConstraint(
                condition=models.Q(("cleared_at__isnull", True)),
                fields=("cluster", "strategy"),
                name="strategy_alarm_one_open_per_strategy",
            ),
        ),
    ]
