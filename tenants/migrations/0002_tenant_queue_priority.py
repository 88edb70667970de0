from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="queue_priority",
            field=models.PositiveSmallIntegerField(
                db_default=0,
                default=0,
                help_text="Among its siblings, who has a higher one is served first of what nobody else claims.",
                verbose_name="queue priority",
            ),
        ),
    ]
